// Algorithm 1: one word, one segmentation; and the exact probabilities of all of them.
//
// A merge is an occurrence: two adjacent symbols at a position. At each step every candidate is
// dropped with probability p, and the survivor of highest priority (of equal priority, the
// leftmost) is applied. Walking the candidates in that order and stopping at the first survivor is
// the same thing, and needs one decision a step. With p = 0 the rule is subword-nmt's: all
// occurrences of the best pair at once.
#pragma once

#include <stdexcept>

#include "merges.h"

namespace bpe {

// Work space, so that drawing words one after the other allocates nothing.
struct Scratch {
  std::vector<Symbol> symbols;
  std::vector<Rank> ranks;
  std::vector<Piece> pieces;
  std::vector<std::pair<std::size_t, Rank>> set_aside;
};

// The tokens of a part and the ranks of the merges between them. All in two flat arrays: for words
// as they come, moving a few bytes is faster than any cleverer structure.
class Tokens {
 public:
  Tokens(const Merges& merges, std::vector<Symbol>& symbols, std::vector<Rank>& ranks)
      : merges_(merges), symbols_(symbols), ranks_(ranks) {
    ranks.resize(symbols.size());
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      ranks[i] = merges.rank(symbols[i], symbols[i + 1]);
      candidates_ += ranks[i] != kNoMerge;
    }
    if (!symbols.empty()) ranks.back() = kNoMerge;
  }

  std::size_t candidates() const { return candidates_; }

  // Applies the candidate that has `before` others ahead of it in priority.
  void merge(std::size_t before, std::vector<std::pair<std::size_t, Rank>>& set_aside);
  // Applies all occurrences of the best pair that do not overlap, from the left.
  void merge_all_of_best();

 private:
  std::size_t best() const {
    Rank least = kNoMerge;
    for (const Rank rank : ranks_) least = std::min(least, rank);
    std::size_t i = 0;
    while (ranks_[i] != least) ++i;
    return i;
  }
  void apply(std::size_t i);
  void set(std::size_t i) {
    candidates_ -= ranks_[i] != kNoMerge;
    ranks_[i] = merges_.rank(symbols_[i], symbols_[i + 1]);
    candidates_ += ranks_[i] != kNoMerge;
  }

  const Merges& merges_;
  std::vector<Symbol>& symbols_;
  std::vector<Rank>& ranks_;  // of the pair (i, i + 1); the last is kNoMerge
  std::size_t candidates_ = 0;
};

// Draws a segmentation of `word` into scratch.pieces. `decoder` may be null if p is 0.
void draw(const Merges& merges, const Word& word, const Dropout& dropout, Decoder* decoder, Scratch& scratch);

// Whether a part is a piece by itself, whatever the merges: protected, or one character.
std::optional<Piece> whole(const Word& word, std::size_t part);

inline std::size_t part_count(const Word& word) { return word.parts ? word.parts->size() : 1; }
inline std::string_view part_text(const Word& word, std::size_t i) {
  return word.parts ? std::string_view((*word.parts)[i].text) : word.text;
}

struct TooManyStates : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Outcome {
  std::vector<Piece> pieces;
  double probability;
};

// Every segmentation of `word` with its probability. Throws TooManyStates if more than `most`
// states of Algorithm 1 can be reached.
std::vector<Outcome> distribution(const Merges& merges, const Word& word, double p, std::size_t most);

}  // namespace bpe
