"""English of our own making for the tests: the same lines on every machine and with every version of Python.

Words are stems with prefixes and endings, so that they share pieces as real ones do, and come as often as Zipf's law
says. Nothing here reads as a sentence.
"""

from bisect import bisect_right
from itertools import accumulate
from random import Random

FREQUENT = """
the of a to and in is that it for as with be on are by this or an at not from which can if but has all will one have
when any other used may more its also such than only no each into was must these they then same been two their there
first following both so object value name type class function method module string list set return true false none
"""

STEMS = """
act add allow appear argue ask assign attend base begin bind break build call carry cause change charge check choose
claim clear close code collect come command compare compile complete compose compute connect consider consist contain
continue control convert cover create cross cut deal decide declare define delete depend derive describe design detail
develop differ direct display divide document draw drive effect employ enable encode end engage enter equal establish
evaluate exact except execute exist expand expect explain express extend fail fall feature file fill find finish fit
fix flow follow force form formal found frame gain gather general generate give govern grant group grow handle happen
head help hold identify implement import improve include increase indicate inform inherit insert install instance
intend interest interpret introduce invoke involve iterate join judge keep keyword know land last lead learn leave
letter limit line link list load local lock long look loop lose maintain make manage map mark market match matter mean
measure meet member merge modify move multiply name need nest normal note notice number observe obtain occur offer open
operate order organize output own pack parse part pass pattern perform place plan play point position possess prepare
present press prevent print process produce program propose protect provide publish pull push question raise range
reach read reason receive record reduce refer reflect register regular relate release remain remove render repeat
replace report represent require reserve resolve respond rest result retain reverse round rule run sample save scope
search select send sense sequence serve settle shape share shift show side sign single size slice solve sort source
space speak specify spell split stand start state statement step stop store stream structure subject succeed suggest
support suppose switch symbol syntax system table take target teach tell tend test text throw time token touch trace
trade train transform translate treat turn unit update use value vary view visit wait walk warn watch weigh win wonder
word work wrap write yield
"""

PREFIXES = ["", "", "", "un", "re", "pre", "over", "inter", "mis", "sub", "non"]
ENDINGS = ["", "s", "ed", "ing", "er", "ers", "able", "ment", "ments", "ation", "ations", "ness", "less", "ly", "ful"]
MARKS = [",", ".", "(", ")", '"', "'", "-", ":", "=", "[", "]", "_", "*", ";", "0", "1", "2", "10", "42", "1999"]
LINES, WORDS = 7000, 15


def make_lines() -> list[str]:
    random = Random(20)

    def pick(items: list[str]) -> str:
        return items[int(random.random() * len(items))]

    stems = STEMS.split()
    rare = [pick(PREFIXES) + stem + pick(ENDINGS) for _ in range(12) for stem in stems]
    words = list(dict.fromkeys([*MARKS[:2], *FREQUENT.split(), *stems, *rare, *MARKS, "x", "i", "statements"]))
    # Whole numbers, so that no rounding moves a word.
    sums = list(accumulate(10**9 // (rank + 3) for rank in range(len(words))))
    return [
        " ".join(words[bisect_right(sums, int(random.random() * sums[-1]))] for _ in range(WORDS)) for _ in range(LINES)
    ]
