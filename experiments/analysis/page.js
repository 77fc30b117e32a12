// What the page does in the browser: the theme, sorting of tables, copying of commands, and the explorer, with
// Algorithm 1 as in bpe_dropout/reference.py. Without it all tables and figures still show. Left out: vocabularies and
// codes of version 0.1, which the explorer does not have.

"use strict";

// Algorithm 1. Tokens are arrays of strings; ranks are a Map from a pair, joined by a space, to its priority: no token
// has a space in it.

const END = "</w>";
const STATES = 200000; // how many the enumeration may visit

const ranksOf = (pairs) => {
  const ranks = new Map();
  pairs.forEach(([left, right], rank) => {
    const pair = `${left} ${right}`;
    if (!ranks.has(pair)) ranks.set(pair, rank);
  });
  return ranks;
};

const characters = (word) => {
  const tokens = [...word];
  tokens[tokens.length - 1] += END;
  return tokens;
};

// The positions at which a merge is possible, the highest priority first; of equals, the leftmost.
const candidates = (tokens, ranks) => {
  const found = [];
  for (let i = 0; i + 1 < tokens.length; i++) {
    const rank = ranks.get(`${tokens[i]} ${tokens[i + 1]}`);
    if (rank !== undefined) found.push([rank, i]);
  }
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, i]) => i);
};

const merge = (tokens, i) => [...tokens.slice(0, i), tokens[i] + tokens[i + 1], ...tokens.slice(i + 2)];

const spell = (tokens) => {
  const last = tokens.at(-1);
  return [...tokens.slice(0, -1), last.endsWith(END) ? last.slice(0, -END.length) : last];
};

// A step is the tokens before it, the positions that could be merged, and of these the applied and the dropped. The
// last step applies nothing: its tokens are the result.

// Without dropout, by subword-nmt's rule: the best pair is merged wherever it occurs, from the left.
const plainSteps = (word, ranks) => {
  const steps = [];
  let tokens = characters(word);
  for (;;) {
    const possible = candidates(tokens, ranks);
    const applied = [];
    for (let i = 0; possible.length && i + 1 < tokens.length; i++) {
      if (tokens[i] === tokens[possible[0]] && tokens[i + 1] === tokens[possible[0] + 1]) applied.push(i++);
    }
    steps.push({ tokens, possible, applied, dropped: [] });
    if (!applied.length) return steps;
    for (const i of applied.toReversed()) tokens = merge(tokens, i);
  }
};

// As the algorithm is printed: drop each candidate with probability p, apply the best survivor.
const sampleSteps = (word, ranks, p, random) => {
  const steps = [];
  let tokens = characters(word);
  for (;;) {
    const possible = candidates(tokens, ranks);
    const dropped = possible.filter(() => random() < p);
    const applied = possible.filter((i) => !dropped.includes(i)).slice(0, 1);
    steps.push({ tokens, possible, applied, dropped });
    if (!applied.length) return steps;
    tokens = merge(tokens, applied[0]);
  }
};

const plain = (word, ranks) => spell(plainSteps(word, ranks).at(-1).tokens);

// Every segmentation with its exact probability: [[pieces, probability], ...]; null if there are too many states. The
// i-th candidate is applied with probability p^i (1 - p), none of n with p^n. A merge makes a state one token shorter,
// so the states are processed from the longest to the shortest. Pauses after each state: others get their turn. With
// `allowed`, only the merges that it allows are followed.
function* enumerate(word, ranks, p, allowed = () => true) {
  if ([...word].length === 1) return [[[word], 1]];
  if (p === 0) return [[plain(word, ranks), 1]];
  const done = [];
  const start = characters(word);
  let states = new Map([[start.join(" "), { tokens: start, probability: 1 }]]); // a merge takes a space out of the key
  for (let count = 0; states.size; ) {
    count += states.size;
    const shorter = new Map();
    for (const [before, { tokens, probability }] of states) {
      const found = candidates(tokens, ranks);
      let end = -1;
      const spaces = tokens.map((token) => (end += token.length + 1));
      found.forEach((position, i) => {
        if (!allowed(tokens, position)) return;
        const key = before.slice(0, spaces[position]) + before.slice(spaces[position] + 1);
        const share = probability * p ** i * (1 - p);
        const state = shorter.get(key);
        if (state) state.probability += share;
        else shorter.set(key, { tokens: merge(tokens, position), probability: share });
      });
      if (count + shorter.size > STATES) return null;
      const stays = probability * p ** found.length;
      if (stays > 0) done.push([spell(tokens), stays]);
      yield;
    }
    states = shorter;
  }
  return done;
}

// The probability of one segmentation; null if it takes too many states, far fewer than to list all. Only tokens that can
// become part of its pieces are made on the way to it.
function* probabilityOf(pieces, ranks, p) {
  const word = pieces.join("");
  const text = (begin, end) => word.slice(begin, end) + (end === word.length ? END : "");
  const useful = new Set();
  const mark = (begin, end) => {
    if (useful.has(`${begin} ${end}`)) return;
    useful.add(`${begin} ${end}`);
    for (let middle = begin + 1; middle < end; middle++) {
      if (!ranks.has(`${text(begin, middle)} ${text(middle, end)}`)) continue;
      mark(begin, middle);
      mark(middle, end);
    }
  };
  let begin = 0;
  for (const piece of pieces) mark(begin, (begin += piece.length));
  const isUseful = (tokens, i) => {
    let from = 0;
    for (let before = 0; before < i; before++) from += tokens[before].length;
    return useful.has(`${from} ${Math.min(from + tokens[i].length + tokens[i + 1].length, word.length)}`);
  };
  const found = yield* enumerate(word, ranks, p, isUseful);
  return found && (found.find(([one]) => one.join(" ") === pieces.join(" "))?.[1] ?? 0);
}

const finish = (work) => {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
};

// A small generator of numbers in [0, 1), the same for the same seed: mulberry32.
const mulberry32 = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

// For tests, and for the curious.
window.bpeDropout = {
  plain: (pairs, word) => plain(word, ranksOf(pairs)),
  sample: (pairs, word, p, seed) => spell(sampleSteps(word, ranksOf(pairs), p, mulberry32(seed)).at(-1).tokens),
  distribution: (pairs, word, p) => finish(enumerate(word, ranksOf(pairs), p)),
  probability: (pairs, pieces, p) => finish(probabilityOf(pieces, ranksOf(pairs), p)),
};

// The page.

const byId = (id) => document.getElementById(id);

// An element with properties, of which `data` and `aria` are groups of attributes, and with children.
const make = (tag, { data = {}, aria = {}, ...properties } = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  element.append(...children);
  return element;
};

const startTheme = () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => {
    byId("theme").textContent = isDark() ? "Light theme" : "Dark theme";
  };
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // no storage: until the page is left
    }
    label();
  });
  system.addEventListener("change", label);
  label();
};

const startCopying = () => {
  for (const command of document.querySelectorAll(".command")) {
    const code = command.querySelector("code");
    const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy ${code.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 2000);
      } catch {
        getSelection().selectAllChildren(code);
      }
    });
    command.append(" ", button);
  }
};

// Sorting. By value where a cell has one; in a column without values, by text. What has neither comes last, up or down.

const textOf = (cell) => (cell.querySelector(".ours") ?? cell).textContent.trim();

const compare = (column, rows, down) => {
  const cell = (row) => row.cells[column];
  const byValue = rows.some((row) => cell(row).dataset.value !== undefined);
  const key = (row) => (byValue ? cell(row).dataset.value : textOf(cell(row))) || undefined;
  const order = byValue ? (a, b) => a - b : (a, b) => a.localeCompare(b, "en", { numeric: true });
  return (one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    return down ? order(b, a) : order(a, b);
  };
};

const startSorting = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  const homes = [...table.tBodies];
  const rowsOf = (home) => [...home.rows].filter((row) => row.className !== "group");
  const rows = homes.flatMap((home) => rowsOf(home).map((row) => ({ row, home })));
  const sorted = table.appendChild(make("tbody"));
  const sort = (column, direction) => {
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? direction : "none"));
    table.classList.toggle("sorted", direction !== "none");
    if (direction === "none") {
      for (const { row, home } of rows) home.append(row);
    } else {
      const all = rows.map(({ row }) => row);
      sorted.append(...all.toSorted(compare(column, all, direction === "descending")));
    }
  };
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", title: "Sort" });
    if (!head.textContent.trim()) button.setAttribute("aria-label", "title of the row");
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" };
      sort(column, next[head.getAttribute("aria-sort")]);
    });
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });
};

// In the contents, the part that is being read. On a phone they are closed.
const startContents = () => {
  byId("contents").open = !matchMedia("(max-width: 40rem)").matches;
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target.id);
      const current = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) {
        if (id === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-10% 0px -60% 0px" },
  );
  for (const id of links.keys()) observer.observe(byId(id));
};

// The explorer.

const SHOWN = 10; // segmentations, before all are asked for
const MOST = 1000; // segmentations, when they are
const LONGEST = 100; // characters of a word
const SEEDS = 2 ** 32;

// Pieces as subword-nmt writes them: un@@ related.
const written = (pieces) => pieces.map((piece, i) => (i + 1 < pieces.length ? `${piece}@@` : piece)).join(" ");

const readable = (probability) =>
  probability === 1 ? "1" : probability >= 1e-6 ? probability.toFixed(6) : probability.toExponential(2);

const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

// A merge table as the page has it: title, language, an example, and the thing that one types: a word, or a phrase in a
// language without spaces. To it come the ranks, the characters that are in merges, and whether there are capitals.
const readTable = ({ merges, ...table }) => {
  const pairs = merges ? merges.split("\n").map((line) => line.split(" ")) : [];
  const known = new Set(pairs.flat().flatMap((token) => [...token.replace(END, "")]));
  return { ...table, ranks: ranksOf(pairs), known, hasCapitals: [...known].some((one) => one !== one.toLowerCase()) };
};

// What is wrong with the word and p, as a sentence; nothing if all is well.
const problemOf = ({ word, p }, thing) => {
  if (word === "") return `Type a ${thing}.`;
  if (/\s/.test(word)) return `There is white space in the ${thing}; BPE segments one word at a time.`;
  if ([...word].length > LONGEST) return `The ${thing} has more than ${LONGEST} characters, too many for this page.`;
  if (!(p >= 0 && p <= 1)) return "p is a probability: a number from 0 to 1.";
  return "";
};

// What the explorer can and cannot do with a table.
const limitsOf = ({ thing, hasCapitals }) =>
  [
    thing === "phrase"
      ? `This language has no spaces: what BPE segments is a phrase, here of at most ${LONGEST} characters.`
      : `One word at a time, of at most ${LONGEST} characters.`,
    "Very long ones have too many segmentations to list " +
      `(more than ${STATES.toLocaleString("en")} states on the way to them): of these plain BPE and a draw are shown, and their probabilities where those can be found.`,
    `Nothing is tokenized: punctuation that you type is part of the ${thing}.`,
    hasCapitals ? "" : "The merges are of lowercased text, so capitals are lowercased.",
  ].join(" ");

// What there is to know about this word and this table.
const remarksOf = ({ typed, word }, { known }) => {
  const unknown = [...new Set(word)].filter((one) => !known.has(one)).map((one) => `“${one}”`);
  const stays = unknown.length > 1 ? "they are never merged, and stay" : "it is never merged, and stays";
  return [
    typed === word ? "" : `“${typed}” is lowercased, as the text of these merges was.`,
    unknown.length ? `No merge of this table has ${unknown.join(", ")}: ${stays} single.` : "",
  ]
    .join(" ")
    .trim();
};

// The distribution of a long word takes seconds: it is computed in slices, and given up for `isStale`.
const inSlices = async (work, doing, isStale) => {
  for (let start = performance.now(); ; ) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() - start < 30) continue;
    byId("expectation").textContent = doing;
    byId("segmentations").setAttribute("aria-busy", "true");
    await new Promise((resume) => setTimeout(resume));
    if (isStale()) return undefined;
    start = performance.now();
  }
};

const showDistribution = ({ word, p }, found, single, shown = SHOWN) => {
  byId("all").hidden = true;
  byId("segmentations").setAttribute("aria-busy", "false");
  byId("segmentations").parentElement.hidden = !found;
  byId("more").textContent = "";
  if (!found) {
    byId("expectation").textContent =
      `“${word}” has too many segmentations to list them all: more than ${STATES.toLocaleString("en")} states would have to be visited. ` +
      "A single draw is shown below." +
      single
        .map(([name, probability]) =>
          probability === null
            ? ` The probability of ${name} would take as many.`
            : ` The probability of ${name} is ${readable(probability)}.`,
        )
        .join("");
    return;
  }
  found.sort((a, b) => b[1] - a[1]);
  const expected = found.reduce((sum, [pieces, probability]) => sum + pieces.length * probability, 0);
  byId("expectation").replaceChildren(
    `“${word}” with p = ${p}: ${count(found.length, "segmentation")}, `,
    make("span", { id: "expected", data: { value: expected } }, expected.toFixed(3)),
    " pieces on average.",
  );
  byId("segmentations").tBodies[0].replaceChildren(
    ...found.slice(0, shown).map(([pieces, probability]) => {
      const bar = make("div");
      bar.style.width = `${(100 * probability) / found[0][1]}%`;
      return make(
        "tr",
        { data: { probability } },
        make("th", { scope: "row" }, written(pieces)),
        make("td", { className: "number", title: String(probability) }, readable(probability)),
        make("td", { className: "bar" }, bar),
      );
    }),
  );
  const rest = found.slice(shown);
  if (rest.length) {
    const together = rest.reduce((sum, [, probability]) => sum + probability, 0);
    byId("more").textContent = `and ${rest.length} more with a probability of ${readable(together)} together`;
    const most = Math.min(found.length, MOST);
    byId("all").textContent = most < found.length ? `Show the first ${most}` : `Show all ${most}`;
    byId("all").hidden = shown >= most;
    byId("all").onclick = () => showDistribution({ word, p }, found, single, most);
  }
};

// A step as in the paper's figure 1: a hyphen where two tokens can be merged, nothing where they cannot.
const showStep = ({ tokens, possible, applied, dropped }, ranks) => {
  const pieces = spell(tokens);
  const row = make("span", { className: "tokens" });
  const joined = new Set(applied.flatMap((i) => [i, i + 1]));
  tokens.forEach((left, i) => {
    row.append(make("span", { className: joined.has(i) ? "token joined" : "token" }, pieces[i]));
    if (i + 1 === tokens.length) return;
    if (!possible.includes(i)) return row.append(make("span", { className: "gap" }, " "));
    const right = tokens[i + 1];
    const state = applied.includes(i) ? "applied" : dropped.includes(i) ? "dropped" : "possible";
    const title = `${pieces[i]} + ${pieces[i + 1]}: ${state}, merge ${ranks.get(`${left} ${right}`) + 1} of the table`;
    const said = { title, role: "img", aria: { label: title } };
    row.append(make("span", { className: `mark ${state}`, ...said, data: { left, right } }, "-"));
  });
  const said = describe(pieces, possible, applied, dropped);
  return make("li", {}, row, " ", make("span", { className: "what", lang: "en" }, ...said));
};

const describe = (pieces, possible, applied, dropped) => {
  if (!possible.length) return ["nothing left to merge"];
  if (!applied.length) return [`${possible.length > 1 ? `all ${possible.length} ` : ""}dropped, and so done`];
  const times = applied.length > 1 ? `, ${applied.length} times` : "";
  const lost = dropped.length ? `, ${dropped.length} dropped` : "";
  return [make("b", {}, `${pieces[applied[0]]} + ${pieces[applied[0] + 1]}`), times + lost];
};

const showSteps = ({ word, p, seed, without }, ranks) => {
  const isPlain = without || p === 0;
  if (!isPlain && !(Number.isInteger(seed) && seed >= 0 && seed < SEEDS)) {
    const problem = `The seed is a whole number from 0 to ${SEEDS - 1}.`;
    byId("drawn").replaceChildren(make("span", { className: "problem" }, problem));
    byId("steps").replaceChildren();
    return undefined;
  }
  const steps = isPlain ? plainSteps(word, ranks) : sampleSteps(word, ranks, p, mulberry32(seed));
  const how = isPlain ? "plain BPE" : `p = ${p}, seed ${seed}`;
  byId("drawn").replaceChildren(
    `“${word}”, ${how}: `,
    make("output", { id: "segmentation" }, written(spell(steps.at(-1).tokens))),
  );
  byId("steps").replaceChildren(...steps.map((step) => showStep(step, ranks)));
  return isPlain ? undefined : spell(steps.at(-1).tokens);
};

const startExplorer = () => {
  const tables = JSON.parse(byId("merges").textContent);
  const cache = new Map();
  const tableAt = (number) => {
    if (!cache.has(number)) cache.set(number, readTable(tables[number]));
    return cache.get(number);
  };
  const state = () => {
    const [number, typed] = [Number(byId("table").value), byId("word").value.trim()];
    const table = tableAt(number);
    return {
      number,
      table,
      typed,
      word: table.hasCapitals ? typed : typed.toLowerCase(),
      p: byId("p").valueAsNumber,
      seed: byId("seed").valueAsNumber,
      without: byId("without").checked,
    };
  };

  // A link shows the same thing: #explorer?word=unrelated&p=0.1&seed=1
  const writeLink = ({ table, typed, p, seed, without }) => {
    const query = new URLSearchParams({ word: typed, p, seed });
    if (tables.length > 1) query.set("table", table.title);
    if (without) query.set("plain", "1");
    history.replaceState(null, "", `#explorer?${query}`);
  };
  const readLink = () => {
    const [place, query] = [location.hash.slice(0, 10), location.hash.slice(10)];
    if (place !== "#explorer?") return false;
    const asked = new URLSearchParams(query);
    for (const name of ["word", "p", "seed"]) if (asked.has(name)) byId(name).value = asked.get(name);
    byId("slider").value = byId("p").value;
    byId("without").checked = asked.get("plain") === "1";
    const table = tables.findIndex(({ title }) => title === asked.get("table"));
    if (table >= 0) byId("table").value = table;
    return true;
  };

  const showTable = ({ language, thing, ...table }) => {
    byId("thing").textContent = thing === "phrase" ? "Phrase" : "Word";
    byId("limits").textContent = limitsOf({ thing, ...table });
    const places = [byId("word"), byId("plain"), byId("steps"), byId("segmentations").tBodies[0]];
    for (const place of places) place.lang = language;
  };

  let turn = 0;
  const show = async () => {
    const now = state();
    const mine = ++turn;
    const problem = problemOf(now, now.table.thing);
    showTable(now.table);
    byId("problem").textContent = problem;
    byId("remarks").textContent = problem ? "" : remarksOf(now, now.table);
    byId("result").hidden = Boolean(problem);
    if (problem) return;
    const { ranks } = now.table;
    byId("plain").textContent = written(plain(now.word, ranks));
    const drawn = showSteps(now, ranks);
    const isStale = () => mine !== turn;
    const finding = `Finding all segmentations of “${now.word}” …`;
    const found = await inSlices(enumerate(now.word, ranks, now.p), finding, isStale);
    if (!isStale()) showDistribution(now, found, []);
    const single = [];
    const asked = [["plain BPE", plain(now.word, ranks)], ...(drawn ? [["this draw", drawn]] : [])];
    for (const [name, pieces] of found || isStale() ? [] : asked) {
      const doing = `“${now.word}” has too many segmentations to list. Finding the probability of ${name} …`;
      const probability = await inSlices(probabilityOf(pieces, ranks, now.p), doing, isStale);
      if (isStale()) return;
      single.push([name, probability]);
      showDistribution(now, found, single);
    }
  };
  // Browsers refuse an address that changes too often, as under a slider.
  let waiting;
  const change = () => {
    show();
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const now = state();
      if (!problemOf(now, now.table.thing)) writeLink(now);
    }, 200);
  };
  const follow = () => {
    if (!readLink()) return;
    show();
    byId("explorer").scrollIntoView();
  };

  // A table comes with its own example and p, unless something else was typed.
  let last = tables[byId("table").value];
  byId("table").addEventListener("input", () => {
    const next = tables[byId("table").value];
    if (byId("word").value === last.example) byId("word").value = next.example;
    if (byId("p").valueAsNumber === last.p) byId("p").value = byId("slider").value = next.p;
    last = next;
  });
  byId("slider").addEventListener("input", () => (byId("p").value = byId("slider").value));
  byId("p").addEventListener("input", () => (byId("slider").value = byId("p").value));
  byId("again").addEventListener("click", () => {
    byId("seed").value = Math.floor(Math.random() * SEEDS);
    change();
  });
  for (const form of [byId("controls"), byId("drawing")]) {
    form.addEventListener("input", change);
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  addEventListener("hashchange", follow);
  show();
  follow();
};

startTheme();
startCopying();
document.querySelectorAll("table.sortable").forEach(startSorting);
startContents();
if (byId("merges")) startExplorer();
