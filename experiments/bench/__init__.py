"""The benchmarks: `make bench`.

rows.py         what is measured, as data: work, text, against which tool
texts.py        the texts: real ones, and those made for scale
work.py         what is timed: each kind of work, done by each tool
competitor.py   a process that does one kind of work with one tool, turn by turn
turns.py        takes turns between competitors, and what follows from their times
tables.py       what was measured, as docs/speed.md and README.md show it
base.py         the core of another commit, to compare with: `make bench BASE=REV`
training.py     training in fairseq
"""
