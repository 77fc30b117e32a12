"""The page of the report in a real browser: Debian's chromium, driven by selenium. Left out: whether it looks good."""

import itertools
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bpe_dropout import Codes, Segmenter
from bpe_dropout.reference import distribution, plain, spell
from experiments.analysis.document import Cell, Drawing, Finding, ReportPart, Row, Section, Table
from experiments.analysis.drawing import SIZE, draw_steps, new_figure
from experiments.analysis.page import PHRASES, TITLE, MergeTable, render
from scripts.corpora import ROOT
from scripts.paper import read_items
from tests.patience import PATIENCE

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, which is not installed")

from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

# Among them pairs that repeat or overlap, text beyond ASCII and beyond the first plane, a single character.
WORDS = ["unrelated", "statement", "anananan", "zooooom", "naïveté", "x𝔘nderlined", "a"]
MERGES = (("o", "o"), ("n", "a"), ("a", "n"), ("an", "an"), ("na", "n</w>"), ("ï", "v"), ("𝔘", "n"), ("x", "𝔘n"))
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",  # what scrolls smoothly cannot be clicked yet
]
SMALL = 150  # merges of the second table
# As merges of Japanese are: of phrases, which have no spaces between words.
JAPANESE = Codes((("で", "す</w>"), ("い", "る</w>"), ("猫", "が"), ("好", "き"), ("好き", "です</w>"), ("が", "好")))
PHRASE = "猫が好きです"


def needed(name: str) -> str:
    path = shutil.which(name)
    if not path:
        pytest.skip(f"needs {name}, which is not on the path: apt-get install chromium chromium-driver")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = needed("chromium")
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(needed("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(codes: Codes, tmp_path_factory: pytest.TempPathFactory) -> str:
    tables = [
        MergeTable("English & more", list(codes.pairs)),
        MergeTable("few </script> merges", list(codes.pairs[:SMALL])),
        MergeTable("Japanese", list(JAPANESE.pairs), "ja"),
    ]
    path: Path = tmp_path_factory.mktemp("page") / "page.html"
    introduction = "Of [a paper](https://example.org/paper), <2> claims; see `make list`."
    path.write_text(render(introduction, build_found(), build_sections(), tables), "utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page as it is when it is opened first; no test may leave an error in the console."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get("about:blank")  # a change of the hash alone would load nothing
    browser.get(address)
    yield browser
    assert browser.get_log("browser") == []
    browser.execute_script("localStorage.clear()")


def build_found() -> ReportPart:
    rows = [
        Row([Cell("BPE-dropout is best."), Cell("+0.6 to +1.5"), Cell("+1.8"), Cell(verdict="reproduced")]),
        Row([Cell("It is faster."), Cell("–"), Cell("0.1"), Cell(verdict="not reproduced")]),
        Row([Cell("p = 0.1 is best."), Cell("–"), Cell("–"), Cell(verdict="undecided", spread="1 of 3 seeds")]),
        Row([Cell("It is red."), Cell("–"), Cell("–"), Cell(verdict="not run")]),
    ]
    columns = ["what the paper says", "the paper's numbers", "the study's", "verdict"]
    title = "What was found"
    return ReportPart("claims", title, "", "Of 4 claims.", [Table("table-claims", title, columns, rows)])


def build_sections() -> list[Section]:
    def ran(text: str, paper: str, difference: str, verdict: str, best: bool = False) -> Cell:
        cell = Cell(text, float(text), paper=paper, difference=difference, verdict=verdict)
        cell.best, cell.paper_best = best, not best
        return cell

    def missing(paper: str, run: str) -> Cell:
        return Cell(paper=paper, verdict="not run", commands=[f"make {run}"])

    table = Table(
        "table-main",
        "Of <b>",
        ["", "BPE", "system"],
        [
            Row([Cell("En-Vi"), ran("31.78", "31.78", "+0.00", "agrees", best=True), Cell("b 10")], "IWSLT15"),
            Row([Cell("Vi-En"), missing("30.83", "vi-en"), Cell("b 9")], "IWSLT15"),
            Row([Cell("En-Fr"), ran("9.50", "9.90", "-0.40", "near"), Cell("")], "WMT14"),
            Row([Cell("Fr-En"), ran("40.00", "35.50", "+4.50", "differs"), Cell("A")], "WMT14"),
            Row([Cell("Ja-En"), missing("", "vi-en"), Cell("c")]),
        ],
        notes=["Bold is `best`."],
    )
    alone = Table(
        "table-alone",
        "Times",
        ["", "BPE", "BPE-dropout", "difference"],
        [
            Row([Cell("En-De"), missing("27.41", "en-de"), missing("28.01", "de"), Cell(paper="+0.60", value=0.6)]),
            Row([Cell("De-En"), missing("32.69", "de-en"), Cell("–"), Cell()]),
        ],
    )
    wide = Table(
        "table-wide",
        "A wide table",
        [f"a long title {i}" for i in range(12)],
        [Row([Cell("1", 1.0)] * 12)],
    )
    main = ReportPart(
        "table-main",
        "Main results",
        "Section 5.1, Table 2",
        "One paragraph.\n\nAnother, with `code`.",
        [table, wide],
        [
            Finding("best", "BPE-dropout is best.", "reproduced", numbers="+0.60"),
            Finding("so", "Not so.", "undecided", "not significant", "+0.20"),
            Finding("what", "?", "not run"),
        ],
        ["A note."],
        "make fill-table-main",
    )
    drawings: list[Table | Drawing] = [Drawing("figure", f"A curve & {i}", draw()) for i in range(2)]
    drawings.append(Drawing("figure", "Three panels", draw(), [draw(f"panel {i}") for i in range(3)]))
    lengths = ReportPart("lengths", "Lengths", "Section 5.5, Figure 4", "Drawings of one name.", drawings)
    unrun = ReportPart("table-time", "Times", "Table 4", "", [alone], [Finding("slow", "It is slow.", "not run")])
    unrun.fill = "make fill-table-time"
    return [
        Section("The study", "A text.\n\nAnother.", [lengths]),
        Section("The paper's own", "Of GPUs.", [main, unrun]),
    ]


def symbols(page: Any, selector: str) -> list[str]:
    """Of badges."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e, '::before').content[1])"
    return list(page.execute_script(script, selector))


def draw(title: str = "") -> Any:
    figure, (axes,) = new_figure((2.5, 2.0) if title else SIZE)
    axes.set_title(title)
    draw_steps(axes, {1: 2, 2: 5, 3: 1}, "BPE", "#0072b2", "lengths-bpe")
    return figure


def find(page: Any, selector: str) -> list[Any]:
    return list(page.find_elements(By.CSS_SELECTOR, selector))


def texts(page: Any, selector: str) -> list[str]:
    """The visible text of each that is displayed."""
    return [element.text for element in find(page, selector) if element.is_displayed()]


def type_into(page: Any, name: str, text: str) -> None:
    """All at once, as if pasted."""
    field = page.find_element(By.ID, name)
    field.send_keys(Keys.CONTROL, "a")
    if text:
        page.execute_cdp_cmd("Input.insertText", {"text": text})
    else:
        field.send_keys(Keys.DELETE)


def wait(page: Any, condition: Any) -> None:
    WebDriverWait(page, PATIENCE, poll_frequency=0.05).until(lambda _: condition())


def settled(page: Any, word: str) -> None:
    """The distribution of a word is there."""
    wait(page, lambda: find(page, "#expectation")[0].text.startswith(f"“{word}”"))


# The document.


class Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if tag == "a" and (value or "").startswith("https://"):  # a link asks for nothing until it is followed
                continue
            if name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                self.references.append(value or "")


def test_one_file_without_requests(page: Any, address: str) -> None:
    addresses = Addresses()
    text = page.execute_script("return document.documentElement.outerHTML")
    addresses.feed(text)
    assert addresses.references
    assert all(reference.startswith(("#", "data:")) for reference in addresses.references)
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    # What was asked for is listed even where it failed; what the page's own policy forbids is an error in the console.
    asked = page.execute_script("return performance.getEntries().map(entry => [entry.entryType, entry.name])")
    assert ["navigation", address] in asked
    assert [name for kind, name in asked if kind == "resource" and not name.startswith("data:")] == []


def test_ids(page: Any) -> None:
    addresses = Addresses()
    addresses.feed(page.execute_script("return document.documentElement.outerHTML"))
    assert len(addresses.ids) == len(set(addresses.ids))
    assert {"figure-lengths-bpe", "figure-2-lengths-bpe", "table-main", "explorer"} <= set(addresses.ids)
    inside = [reference[1:] for reference in addresses.references if reference.startswith("#")]
    assert set(inside) <= set(addresses.ids)


def test_document(page: Any) -> None:
    assert page.title == TITLE
    assert find(page, "html")[0].get_attribute("lang") == "en"
    assert texts(page, "h1") == [TITLE]
    assert texts(page, ".summary") == [
        "Of a paper, <2> claims; see make list.",
        "Try it: one word, every segmentation with its exact probability.",
    ]
    assert find(page, ".summary a")[0].get_attribute("href") == "https://example.org/paper"
    assert texts(page, "nav li") == [
        "What was found",
        "Try it: one word\nSection 3, Algorithm 1",
        "The study",
        "Lengths\nSection 5.5, Figure 4",
        "The paper's own",
        "Main results\nSection 5.1, Table 2",
        "Times\nTable 4",
    ]
    ids = [one.get_attribute("id") for one in find(page, "main section")]
    assert ids == ["claims", "explorer", "lengths", "table-main", "table-time"]
    assert texts(page, "main h2") == ["What was found", "Try it: one word", "The study", "The paper's own"]
    assert texts(page, "h3.title") == ["Lengths", "Main results", "Times"]
    assert texts(page, "div.section p") == ["A text.", "Another.", "Of GPUs."]
    assert texts(page, "#table-main > p")[:3] == ["Section 5.1, Table 2", "One paragraph.", "Another, with code."]
    assert "make report" in find(page, "footer")[0].text


def test_drawings(page: Any) -> None:
    drawings = find(page, "#lengths .scroll svg[role=img]")
    assert [drawing.get_attribute("aria-label") for drawing in drawings] == ["A curve & 0", "A curve & 1"]
    widths = [drawing.size["width"] for drawing in drawings]
    assert all(300 < width <= 615 for width in widths)  # 6.4 inches
    assert all(path.size["width"] > 50 for path in find(page, "#figure-lengths-bpe path, #figure-2-lengths-bpe path"))


def set_width(page: Any, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.parametrize(("width", "columns"), [(360, 1), (430, 1), (1280, 3)])
def test_panels_are_below_each_other_on_a_phone(page: Any, width: int, columns: int) -> None:
    set_width(page, width)
    panels = find(page, "#lengths .panels svg[role=img]")
    labels = [panel.get_attribute("aria-label") for panel in panels]
    assert labels == [f"Three panels: panel {i}" for i in range(3)]
    assert len({round(panel.rect["x"]) for panel in panels}) == columns
    assert len({round(panel.rect["y"]) for panel in panels}) == 4 - columns
    # Text has 9 points, of which a point is 4/3 pixels where a drawing has its own width, 2.5 inches.
    assert all(9 * 4 / 3 * panel.rect["width"] / 240 > (10 if columns == 1 else 8) for panel in panels)
    right = page.execute_script("return document.documentElement.clientWidth")
    assert all(panel.rect["x"] + panel.rect["width"] <= right for panel in panels)


def test_cells(page: Any) -> None:
    cells = find(page, "[data-name=table-main] td.number")
    assert [cell.text for cell in cells] == [
        "31.78\npaper 31.78 +0.00\nagrees",
        "○\npaper 30.83",
        "9.50\npaper 9.90 -0.40\nnear",
        "40.00\npaper 35.50 +4.50\ndiffers",
        "○",
    ]
    marks = find(page, "[data-name=table-main] .missing")
    assert [mark.get_attribute("aria-label") for mark in marks] == ["not run"] * 2
    assert [cell.get_attribute("title") for cell in cells] == ["", "make vi-en", "", "", "make vi-en"]
    assert texts(page, "[data-name=table-main] .ours strong") == ["31.78"]
    assert texts(page, "[data-name=table-main] .beside strong") == ["9.90", "35.50"]
    assert [row.tag_name for row in find(page, "[data-name=table-main] [scope=row]")] == ["th"] * 5
    captions = texts(page, "[data-name=table-main] figcaption, [data-name=table-main] .note")
    assert captions == ["Of <b>", "Bold is best."]
    assert symbols(page, "#table-main td .badge") == ["✓", "≈", "✗"]


def test_the_papers_numbers_alone(page: Any) -> None:
    """Upright, as numbers of ours are, without a mark in each cell: one line says what it takes to run them."""
    cells = find(page, "[data-name=table-alone] td")
    assert [cell.text for cell in cells] == ["27.41", "28.01", "+0.60", "32.69", "–", ""]
    look = "const style = getComputedStyle(arguments[0]); return [style.fontStyle, style.color, style.fontSize]"
    theirs = find(page, "[data-name=table-alone] td .ours")[0]
    ours = find(page, "[data-name=table-main] td .ours")[0]
    assert page.execute_script(look, theirs) == page.execute_script(look, ours)
    assert find(page, "[data-name=table-alone] :is(.badge, .missing, .beside)") == []
    assert [cell.get_attribute("title") for cell in cells[:2]] == ["make en-de", "make de"]
    (note,) = texts(page, "[data-name=table-alone] .note")
    assert note == "The paper's numbers. Ours need its corpora and a GPU: make fill-table-time Copy"
    assert find(page, "#table-time :is(details, .findings)") == []


def test_what_was_found(page: Any) -> None:
    """Words are flush left, and a verdict is said in words, also that nothing was run."""
    assert [cell.text for cell in find(page, "#claims td:last-child")] == [
        "reproduced",
        "not reproduced",
        "undecided\n1 of 3 seeds",
        "not run",
    ]
    symbols = (
        "return [...document.querySelectorAll('#claims .badge')].map(e => getComputedStyle(e, '::before').content[1])"
    )
    assert page.execute_script(symbols) == ["✓", "✗", "?", "○"]
    assert find(page, "#claims td.number") == []
    assert texts(page, "#claims :is(.where, details, figcaption)") == []


def test_what_was_found_is_read_row_by_row_on_a_phone(page: Any) -> None:
    set_width(page, 360)
    box = find(page, "#claims .scroll")[0]
    assert page.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", box)
    cells = find(page, "#claims tbody tr:first-child > *")
    assert [cell.text for cell in cells] == ["BPE-dropout is best.", "+0.6 to +1.5", "+1.8", "reproduced"]
    assert len({cell.rect["y"] for cell in cells}) == 4
    label = "return getComputedStyle(arguments[0], '::before').content"
    assert [page.execute_script(label, cell) for cell in cells[1:]] == [
        f'"{title}"' for title in ("the paper's numbers", "the study's", "verdict")
    ]
    verdict = cells[-1].find_element(By.CSS_SELECTOR, ".badge")
    assert verdict.rect["x"] - cells[-1].rect["x"] > 100, "beside its label"


def test_titles_are_there_once(page: Any) -> None:
    seen = find(page, "main")[0].text.split("\n")
    for title in ("What was found", "Main results", "Section 5.1, Table 2", "Times", "The study"):
        assert seen.count(title) == 1, title
    assert find(page, "[data-name=table-alone] .scroll")[0].get_attribute("aria-label") == "Times"
    assert texts(page, "[data-name=table-wide] figcaption") == ["A wide table"]


def test_findings_and_commands(page: Any) -> None:
    assert [item.text.split("\n") for item in find(page, ".findings li")] == [
        ["reproduced", "BPE-dropout is best. (+0.60)"],
        ["undecided", "Not so. (not significant; +0.20)"],
        ["not run", "?"],
    ]
    details = find(page, "main details")
    assert [one.text for one in details] == ["○ Not run: 1"]
    details[0].find_element(By.TAG_NAME, "summary").click()
    assert texts(page, "main details code") == ["make fill-table-main", "make vi-en"]
    page.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    find(page, "details .copy")[1].click()
    wait(page, lambda: page.execute_script("return String(getSelection())") == "make vi-en")


# Sorting.


def test_sorting(page: Any) -> None:
    def titles() -> list[str]:
        return texts(page, "[data-name=table-main] tbody th")

    unsorted = ["IWSLT15", "En-Vi", "Vi-En", "WMT14", "En-Fr", "Fr-En", "Ja-En"]
    heads = find(page, "[data-name=table-main] thead th")
    buttons = find(page, "[data-name=table-main] thead button")
    assert titles() == unsorted
    buttons[1].click()
    assert titles() == ["WMT14 · En-Fr", "IWSLT15 · En-Vi", "WMT14 · Fr-En", "IWSLT15 · Vi-En", "Ja-En"]
    assert [head.get_attribute("aria-sort") for head in heads] == ["none", "ascending", "none"]
    buttons[1].send_keys(Keys.ENTER)
    assert titles() == ["WMT14 · Fr-En", "IWSLT15 · En-Vi", "WMT14 · En-Fr", "IWSLT15 · Vi-En", "Ja-En"]
    assert heads[1].get_attribute("aria-sort") == "descending"
    buttons[1].click()
    assert titles() == unsorted
    assert heads[1].get_attribute("aria-sort") == "none"
    buttons[2].click()  # by text, numbers in it as numbers; the empty one last
    assert titles() == ["WMT14 · Fr-En", "IWSLT15 · Vi-En", "IWSLT15 · En-Vi", "Ja-En", "WMT14 · En-Fr"]
    buttons[2].click()
    assert titles() == ["Ja-En", "IWSLT15 · En-Vi", "IWSLT15 · Vi-En", "WMT14 · Fr-En", "WMT14 · En-Fr"]
    buttons[0].click()  # another column begins anew
    assert titles() == ["WMT14 · En-Fr", "IWSLT15 · En-Vi", "WMT14 · Fr-En", "Ja-En", "IWSLT15 · Vi-En"]
    assert [head.get_attribute("aria-sort") for head in heads] == ["ascending", "none", "none"]


# Themes, sizes, paper.


def background(page: Any) -> str:
    return str(page.execute_script("return getComputedStyle(document.body).backgroundColor"))


def brightness(colour: str) -> int:
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def emulate(page: Any, media: str = "", scheme: str = "light") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def test_themes(page: Any, address: str) -> None:
    emulate(page, scheme="dark")
    assert brightness(background(page)) < 150
    emulate(page, scheme="light")
    assert brightness(background(page)) > 700
    button = page.find_element(By.ID, "theme")
    assert button.text == "Dark theme"
    button.click()
    assert brightness(background(page)) < 150

    def is_dark_again() -> bool:
        page.refresh()
        return brightness(background(page)) < 150

    # Chromium stores it in a process of its own: a page that is loaded in the same moment may come too early.
    wait(page, is_dark_again)
    page.find_element(By.ID, "theme").click()
    assert brightness(background(page)) > 700


def test_theme_without_storage(page: Any, address: str) -> None:
    breaks = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('none'); }})"
    script = page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": breaks})
    page.refresh()
    emulate(page, scheme="light")
    page.find_element(By.ID, "theme").click()
    assert brightness(background(page)) < 150
    page.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    page.refresh()


def contrast(one: list[float], other: list[float]) -> float:
    def luminance(colour: list[float]) -> float:
        linear = [c / 12.92 if (c := part / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for part in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page: Any, scheme: str) -> None:
    """WCAG AA: all text has a contrast of at least 4.5 with what is behind it."""
    emulate(page, scheme=scheme)
    page.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    pairs = page.execute_script("""
        const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
        const behind = (element) => {
          const colour = numbers(getComputedStyle(element).backgroundColor);
          return colour[3] === 0 ? behind(element.parentElement) : colour.slice(0, 3);
        };
        const found = new Map();
        for (const element of document.querySelectorAll("body *:not(svg *, script, option)")) {
          if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
          const pair = [numbers(getComputedStyle(element).color).slice(0, 3), behind(element)];
          found.set(String(pair), [element.outerHTML.slice(0, 80), ...pair]);
        }
        return [...found.values()];
    """)
    assert len(pairs) >= 6
    assert [(element, ink, ground) for element, ink, ground in pairs if contrast(ink, ground) < 4.5] == []


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(page: Any, width: int) -> None:
    set_width(page, width)
    page.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    type_into(page, "word", "unrelated" * 5)
    assert page.execute_script("return document.scrollingElement.scrollWidth") <= width
    table = find(page, "[data-name=table-wide] .scroll")[0]
    scrolls = page.execute_script("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
    assert scrolls == (width == 360)


def test_print(page: Any) -> None:
    emulate(page, "print", "dark")
    assert texts(page, "#theme, .copy, form, #controls *, nav, #again, #seed") == []
    ink = page.execute_script("return getComputedStyle(document.body).color")
    assert brightness(ink) < 150
    assert texts(page, "[data-name=table-main] thead th") == ["", "BPE", "system"]
    assert texts(page, "#plain") != []


def test_print_shows_all_rows(page: Any) -> None:
    settled(page, "unrelated")
    visible = """
        const all = "#segmentations tr, .sortable tbody tr, main details p, main details li";
        const rows = document.querySelectorAll(all);
        return [...rows].map((row) => row.checkVisibility());
    """
    on_screen = page.execute_script(visible)
    assert len(on_screen) > 20
    assert not all(on_screen), "what is closed does not show on a screen"
    emulate(page, "print")
    assert all(page.execute_script(visible))
    # What scrolls, or is cut off at the edge of a box.
    hidden = page.execute_script("""
        return [...document.querySelectorAll("main *:not(svg, svg *, .unseen)")].filter((element) => {
          const { overflowX, overflowY } = getComputedStyle(element);
          const cut = element.scrollHeight > element.clientHeight + 1 || element.scrollWidth > element.clientWidth + 1;
          return cut && (overflowX !== "visible" || overflowY !== "visible");
        }).map((element) => element.outerHTML.slice(0, 80));
    """)
    assert hidden == []


def test_without_javascript(page: Any, address: str) -> None:
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.refresh()
        assert "31.78" in find(page, "[data-name=table-main]")[0].text
        assert len(texts(page, "#table-main .title, #lengths .scroll svg")) == 3
        assert texts(page, "form, #result, button") == []
    finally:
        page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        page.refresh()


# The explorer.


def test_distribution_is_the_reference(page: Any, codes: Codes) -> None:
    own = Codes((*MERGES, *codes.pairs))
    computed = page.execute_script(
        "const [pairs, words, ps] = arguments;"
        "return words.map(word => ps.map(p => bpeDropout.distribution(pairs, word, p)));",
        own.pairs,
        WORDS,
        [0, 0.1, 0.5, 1],
    )
    sizes = []
    for word, by_p in zip(WORDS, computed, strict=True):
        for p, found in zip([0, 0.1, 0.5, 1], by_p, strict=True):
            expected = distribution(word, own, p)
            assert {tuple(pieces): value for pieces, value in found} == pytest.approx(expected, rel=0, abs=1e-12)
            sizes.append(len(expected))
    assert max(sizes) > 30
    plains = page.execute_script(
        "return arguments[1].map(word => bpeDropout.plain(arguments[0], word))", own.pairs, WORDS
    )
    assert [tuple(pieces) for pieces in plains] == [spell(plain(word, own), own) for word in WORDS]


def test_the_probability_of_one_segmentation_is_the_reference(page: Any, codes: Codes) -> None:
    own = Codes((*MERGES, *codes.pairs))
    for word, p in itertools.product(WORDS, [0.1, 0.5]):
        expected = distribution(word, own, p)
        found = page.execute_script(
            "const [pairs, all, p] = arguments; return all.map(pieces => bpeDropout.probability(pairs, pieces, p));",
            own.pairs,
            list(expected),
            p,
        )
        assert found == pytest.approx(list(expected.values()), rel=1e-9, abs=1e-15)


def test_distribution_of_japanese_is_the_reference(page: Any) -> None:
    computed = page.execute_script(
        "return bpeDropout.distribution(arguments[0], arguments[1], 0.6)", JAPANESE.pairs, PHRASE
    )
    expected = distribution(PHRASE, JAPANESE, 0.6)
    assert {tuple(pieces): value for pieces, value in computed} == pytest.approx(expected, rel=0, abs=1e-12)
    assert len(expected) > 5


def test_samples_have_the_distribution(page: Any, codes: Codes) -> None:
    count = 4000
    drawn = page.execute_script(
        "const [pairs, count] = arguments; const ranks = ranksOf(pairs);"
        "return Array.from({length: count}, (_, seed) =>"
        "  spell(sampleSteps('unrelated', ranks, 0.3, mulberry32(seed)).at(-1).tokens));",
        codes.pairs,
        count,
    )
    expected = distribution("unrelated", codes, 0.3)
    counts = dict.fromkeys(expected, 0)
    for pieces in drawn:
        counts[tuple(pieces)] += 1
    for pieces, probability in expected.items():
        deviation = (count * probability * (1 - probability)) ** 0.5
        assert abs(counts[pieces] - count * probability) < 5 * deviation + 1


def test_what_is_displayed(page: Any, codes: Codes) -> None:
    settled(page, "unrelated")
    type_into(page, "word", "statements")
    type_into(page, "p", "0.25")
    wait(page, lambda: "statements” with p = 0.25" in find(page, "#expectation")[0].text)
    expected = distribution("statements", codes, 0.25)
    order = sorted(expected.values(), reverse=True)
    rows = page.execute_script("""
        return [...document.querySelectorAll("#segmentations tbody tr")].map((row) =>
          [row.cells[0].innerText, row.cells[1].innerText, Number(row.dataset.probability)]);
    """)
    assert len(rows) == 10
    shown = {}
    for pieces, probability, exact in rows:
        assert float(probability) == pytest.approx(exact, rel=0.01, abs=1e-6)
        shown[tuple(pieces.replace("@@", "").split(" "))] = exact
        assert pieces.count("@@") == pieces.count(" ")
    assert list(shown.values()) == pytest.approx(order[:10], abs=1e-12)
    assert shown == pytest.approx({pieces: expected[pieces] for pieces in shown}, abs=1e-12)
    more = re.fullmatch(r"and (\d+) more with a probability of (\S+) together", find(page, "#more")[0].text)
    assert more
    assert int(more[1]) == len(expected) - 10
    assert float(more[2]) == pytest.approx(sum(order[10:]), rel=0.01, abs=1e-6)
    assert find(page, "#all")[0].text == f"Show all {len(expected)}"
    page.find_element(By.ID, "all").click()
    assert len(find(page, "#segmentations tbody tr")) == len(expected)
    assert not page.find_element(By.ID, "all").is_displayed()
    assert find(page, "#more")[0].text == ""
    mean = sum(len(pieces) * probability for pieces, probability in expected.items())
    assert float(find(page, "#expected")[0].get_attribute("data-value")) == pytest.approx(mean, abs=1e-9)
    assert find(page, "#plain")[0].text == "@@ ".join(spell(plain("statements", codes), codes))
    page.find_element(By.ID, "table").send_keys(Keys.ARROW_DOWN)
    fewer = Codes(codes.pairs[:SMALL])
    assert find(page, "#plain")[0].text == "@@ ".join(spell(plain("statements", fewer), fewer))


def read_steps(page: Any) -> list[tuple[str, list[dict[str, str]]]]:
    """Of each step, its tokens as they are shown, and its marks."""
    return [
        (text, marks)
        for text, marks in page.execute_script("""
            return [...document.querySelectorAll("#steps li")].map((step) => [
              [...step.querySelectorAll(".token")].map((token) => token.textContent).join(" "),
              [...step.querySelectorAll(".mark")].map((mark) => ({
                state: mark.classList[1], text: mark.textContent, label: mark.ariaLabel, ...mark.dataset,
                colour: getComputedStyle(mark).color, line: getComputedStyle(mark).borderBottomStyle,
              })),
            ]);
        """)
    ]


def test_steps_of_a_draw(page: Any, codes: Codes) -> None:
    type_into(page, "p", "0.4")
    seen: dict[str, dict[str, str]] = {}
    for seed in ("1", "2", "3"):
        type_into(page, "seed", seed)
        steps = read_steps(page)
        for (tokens, marks), (after, _) in zip(steps, [*steps[1:], ("", [])], strict=True):
            assert all((mark["left"], mark["right"]) in codes.ranks for mark in marks)
            assert {mark["text"] for mark in marks} <= {"-"}
            applied = [mark for mark in marks if mark["state"] == "applied"]
            assert len(applied) == (1 if after else 0)
            for mark in applied:
                better = [
                    m for m in marks if codes.ranks[m["left"], m["right"]] < codes.ranks[mark["left"], mark["right"]]
                ]
                assert {m["state"] for m in better} <= {"dropped"}
                pair = f"{mark['left']} {mark['right']}".removesuffix("</w>")
                assert len(after) == len(tokens) - 1
                assert pair.replace(" ", "") in after.split()
            seen |= {mark["state"]: mark for mark in marks}
        drawn = find(page, "#segmentation")[0].text
        assert steps[-1][0] == drawn.replace("@@", "")
        assert tuple(steps[-1][0].split()) in distribution("unrelated", codes, 0.4)
        again = page.execute_script(
            "return bpeDropout.sample(arguments[0], 'unrelated', 0.4, arguments[1])", codes.pairs, int(seed)
        )
        assert "@@ ".join(again) == drawn
    assert set(seen) == {"applied", "dropped", "possible"}
    assert len({mark["colour"] for mark in seen.values()}) == 3
    assert [seen[state]["line"] for state in ("applied", "dropped", "possible")] == ["solid", "dotted", "none"]
    assert all(f": {state}, " in mark["label"] for state, mark in seen.items())


def test_drawing_again(page: Any) -> None:
    seeds = set()
    for _ in range(3):
        page.find_element(By.ID, "again").click()
        seed = page.find_element(By.ID, "seed").get_property("value")
        assert f"seed {seed}:" in find(page, "#drawn")[0].text
        seeds.add(seed)
    assert len(seeds) == 3


@pytest.mark.parametrize("by", ["toggle", "p"])
def test_steps_of_plain_bpe(page: Any, codes: Codes, by: str) -> None:
    if by == "toggle":
        page.find_element(By.ID, "without").click()
    else:
        type_into(page, "p", "0")
    for word in ("unrelated", "statements"):
        type_into(page, "word", word)
        steps = read_steps(page)
        assert tuple(steps[-1][0].split()) == spell(plain(word, codes), codes)
        assert not any(mark["state"] == "dropped" for _, marks in steps for mark in marks)
        assert all(any(mark["state"] == "applied" for mark in marks) for _, marks in steps[:-1])


def test_link(page: Any, address: str) -> None:
    type_into(page, "word", "naïve&p=1")
    type_into(page, "p", "0.35")
    type_into(page, "seed", "77")
    page.find_element(By.ID, "table").send_keys(Keys.ARROW_DOWN)
    page.find_element(By.ID, "without").click()
    wait(page, lambda: "plain=1" in page.current_url)
    link = page.current_url
    assert "#explorer?word=" in link
    before = [texts(page, "#plain"), texts(page, "#expectation"), texts(page, "#steps")]
    page.get("about:blank")
    page.get(link)
    settled(page, "naïve&p=1")
    values = [page.find_element(By.ID, name).get_property("value") for name in ("word", "p", "slider", "seed", "table")]
    assert values == ["naïve&p=1", "0.35", "0.35", "77", "1"]
    assert page.find_element(By.ID, "without").is_selected()
    assert [texts(page, "#plain"), texts(page, "#expectation"), texts(page, "#steps")] == before
    page.execute_script("location.hash = '#explorer?word=the&p=0.5'")
    settled(page, "the")


def test_slider(page: Any) -> None:
    page.find_element(By.ID, "slider").send_keys(Keys.ARROW_RIGHT)
    assert page.find_element(By.ID, "p").get_property("value") == "0.11"
    wait(page, lambda: "p = 0.11:" in find(page, "#expectation")[0].text)
    type_into(page, "p", "0.9")
    assert page.find_element(By.ID, "slider").get_property("value") == "0.9"


def test_errors_are_sentences(page: Any) -> None:
    for name, text, problem in (
        ("word", "", "Type a word."),
        ("word", "two words", "There is white space in the word; BPE segments one word at a time."),
        ("word", "a" * 101, "The word has more than 100 characters, too many for this page."),
        ("p", "1.5", "p is a probability: a number from 0 to 1."),
        ("p", "", "p is a probability: a number from 0 to 1."),
    ):
        type_into(page, name, text)
        assert texts(page, "#problem") == [problem]
        assert texts(page, "#result") == []
        type_into(page, name, {"word": "unrelated", "p": "0.1"}[name])
        assert texts(page, "#problem") == []
        assert len(texts(page, "#result")) == 1
    type_into(page, "seed", "-1")
    assert texts(page, "#drawn") == ["The seed is a whole number from 0 to 4294967295."]
    assert texts(page, "#segmentations") != []


def choose(page: Any, table: int) -> None:
    field = page.find_element(By.ID, "table")
    field.send_keys(Keys.HOME, *[Keys.ARROW_DOWN] * table)


def test_japanese(page: Any) -> None:
    settled(page, "unrelated")
    choose(page, 2)
    field = page.find_element(By.ID, "word")
    assert field.get_property("value") == PHRASES["ja"], "a table comes with its example"
    assert field.get_attribute("lang") == "ja"
    assert texts(page, "#thing") == ["Phrase"]
    assert texts(page, "#limits")[0].startswith("This language has no spaces: what BPE segments is a phrase")
    type_into(page, "word", PHRASE)
    settled(page, PHRASE)
    assert texts(page, "#plain") == ["@@ ".join(spell(plain(PHRASE, JAPANESE), JAPANESE))] == ["猫が@@ 好きです"]
    assert texts(page, "#remarks") == []
    type_into(page, "word", "猫が 好き")
    assert texts(page, "#problem") == ["There is white space in the phrase; BPE segments one word at a time."]
    type_into(page, "word", "猫がX好きです。")
    assert texts(page, "#remarks") == [
        "“猫がX好きです。” is lowercased, as the text of these merges was. "
        "No merge of this table has “x”, “。”: they are never merged, and stay single."
    ]
    choose(page, 0)
    assert field.get_property("value") == "猫がX好きです。", "what was typed stays"
    assert texts(page, "#thing") == ["Word"]


def test_capitals_are_lowercased(page: Any, codes: Codes) -> None:
    assert all(pair == (pair[0].lower(), pair[1].lower()) for pair in codes.pairs)
    assert "capitals are lowercased" in texts(page, "#limits")[0]
    type_into(page, "word", "StatementS")
    settled(page, "statements")
    assert texts(page, "#plain") == ["@@ ".join(spell(plain("statements", codes), codes))]
    assert texts(page, "#remarks") == ["“StatementS” is lowercased, as the text of these merges was."]
    assert find(page, "#drawn")[0].text.startswith("“statements”")
    wait(page, lambda: "word=StatementS" in page.current_url)
    type_into(page, "word", "statements")
    assert texts(page, "#remarks") == []


def test_capitals_of_a_table_that_has_them(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    tables = [MergeTable("German", [("H", "a"), ("Ha", "us</w>"), ("u", "s</w>"), ("h", "a")], "de")]
    path.write_text(render("Nothing.", None, [], tables), "utf-8")
    page.get(path.as_uri())
    assert "lowercase" not in texts(page, "#limits")[0]
    type_into(page, "word", "Haus")
    settled(page, "Haus")
    assert texts(page, "#plain") == ["Haus"]
    assert texts(page, "#remarks") == []
    type_into(page, "word", "hauS")
    assert texts(page, "#plain") == ["ha@@ u@@ S"]
    assert texts(page, "#remarks") == ["No merge of this table has “S”: it is never merged, and stays single."]


def test_the_explorer_says_what_it_cannot_do(page: Any) -> None:
    assert texts(page, "#limits") == [
        "One word at a time, of at most 100 characters. Very long ones have too many segmentations to list (more than "
        "200,000 states on the way to them): of these plain BPE and a draw are shown, and their probabilities where "
        "those can be found. Nothing is tokenized: punctuation that you type is part of the word. The merges are of "
        "lowercased text, so capitals are lowercased."
    ]


def test_too_long_to_enumerate(page: Any, codes: Codes) -> None:
    word = "unrelated" * 4
    type_into(page, "word", word)
    wait(page, lambda: "too many segmentations" in find(page, "#expectation")[0].text)
    wait(page, lambda: "The probability of this draw" in find(page, "#expectation")[0].text)
    assert texts(page, "#segmentations") == []
    assert len(find(page, "#steps li")) > 20
    drawn = find(page, "#segmentation")[0].text
    assert drawn.replace("@@ ", "") == word
    shown = re.findall(r"The probability of (plain BPE|this draw) is ([\d.e-]+)\.", find(page, "#expectation")[0].text)
    assert [name for name, _ in shown] == ["plain BPE", "this draw"]
    segmenter = Segmenter(codes)
    for (_, probability), pieces in zip(shown, (segmenter.segment(word), drawn.split()), strict=True):
        assert float(probability) == pytest.approx(segmenter.probability(pieces, 0.1), rel=0.01, abs=1e-6)


def test_no_explorer_without_merges(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render("Nothing.", None, [Section("", "", build_sections()[0].parts)], []), "utf-8")
    page.get(path.as_uri())
    assert find(page, "#explorer, #merges, div.section") == []
    assert texts(page, "nav li") == ["Lengths\nSection 5.5, Figure 4"]
    assert texts(page, "h2.title") == ["Lengths"]


def test_the_report_that_is_committed(page: Any) -> None:
    """Every part of it, in the browser; the fixture sees that its console stays empty."""
    report = ROOT / "experiments" / "report" / "index.html"
    page.get(report.as_uri())
    ids = {section.get_attribute("id") for section in find(page, "main section")}
    assert {"claims", "explorer"} < ids <= {"claims", "explorer", *read_items()}
    figures = [path.stem for path in (report.parent / "figures").glob("*.svg")]
    assert figures
    assert all(find(page, f"[data-name='{name}'] svg[role=img]") for name in figures)
    settled(page, "unrelated")
    assert sum(float(text) for text in texts(page, "#explorer td.number") if re.fullmatch(r"0\.\d+", text)) <= 1.0001
    set_width(page, 1100)
    wide = "[...document.querySelectorAll('.scroll:has(.words)')].filter(one => one.scrollWidth > one.clientWidth)"
    assert page.execute_script(f"return {wide}.map(one => one.ariaLabel)") == [], "words wrap"
    page.set_window_size(400, 800)
    addresses = Addresses()
    addresses.feed(page.execute_script("return document.documentElement.outerHTML"))
    assert len(addresses.ids) == len(set(addresses.ids))
    assert page.execute_script("return document.scrollingElement.scrollWidth <= window.innerWidth")
