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

// The tokens of a part and the merges that are possible between them. Token i is symbols_[i]; keys_[i]
// holds the rank of its merge with the next, and i, so that the least key is the candidate of highest
// priority, and of equals the leftmost. Two flat arrays, scanned four at a time: for ordinary words that
// is faster than any cleverer structure.
class Tokens {
 public:
  static constexpr std::size_t kMost = 128;

  Tokens() = default;
  Tokens(const Tokens& other) { *this = other; }
  Tokens& operator=(const Tokens& other) {
    size_ = other.size_;
    candidates_ = other.candidates_;
    std::copy_n(other.symbols_, size_, symbols_);
    std::copy_n(other.keys_, size_ + kPadding, keys_);
    return *this;
  }

  void start(const Merges& merges, const std::vector<Symbol>& symbols);
  std::size_t candidates() const { return candidates_; }
  // Applies the candidate that has `before` others ahead of it in priority.
  void merge(const Merges& merges, std::size_t before);
  // Applies all occurrences of the best pair that do not overlap, from the left.
  void merge_all_of_best(const Merges& merges);

  const Symbol* symbols() const { return symbols_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kPadding = 8;
  static constexpr int kPositionBits = 7;
  static constexpr std::int32_t kPositionMask = (1 << kPositionBits) - 1;
  static constexpr std::int32_t kNone = 0x7FFFFFFF & ~kPositionMask;  // such a key or a greater one: no merge

  std::int32_t least_above(std::int32_t key) const;
  void set(const Merges& merges, std::size_t i) {
    const Rank rank = merges.rank(symbols_[i], symbols_[i + 1]);
    candidates_ += (rank != kNoMerge) - (keys_[i] < kNone);
    keys_[i] = (rank == kNoMerge ? kNone : rank << kPositionBits) | static_cast<std::int32_t>(i);
  }
  void apply(const Merges& merges, std::size_t i);

  std::size_t size_ = 0;
  std::size_t candidates_ = 0;
  Symbol symbols_[kMost + kPadding];
  std::int32_t keys_[kMost + kPadding];
};

// The same for long words: a linked list, and the candidates in sorted blocks, so that to add, to remove
// and to find the k-th are all cheap, however many there are.
class LongTokens {
 public:
  LongTokens(const Merges& merges, std::vector<Symbol>& symbols);

  std::size_t candidates() const { return candidates_; }
  void merge(const Merges& merges, std::size_t before) { apply(merges, static_cast<u32>(candidate(before))); }
  void merge_all_of_best(const Merges& merges);
  // Leaves the tokens, in their order, in the vector that they came in.
  void finish();

 private:
  static constexpr std::size_t kFill = 256;
  static u64 key(Rank rank, std::size_t i) { return static_cast<u64>(rank) << 32 | i; }

  u64 candidate(std::size_t k) const;
  std::size_t block_of(u64 key) const;  // the last block that begins at or before `key`, or the first
  void insert(u64 key);
  void erase(u64 key);
  void set(std::size_t i, Rank rank);
  void apply(const Merges& merges, std::size_t i);

  std::vector<Symbol>& symbols_;
  std::vector<Rank> ranks_;  // of the merge with the next token
  std::vector<std::size_t> next_, previous_;
  std::vector<std::vector<u64>> blocks_;  // none is empty, but the only one
  std::size_t candidates_ = 0;
};

// Work space, so that drawing words one after the other allocates nothing.
struct Scratch {
  Tokens tokens;
  std::vector<Symbol> symbols;
  std::vector<Piece> pieces;
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

// The mean number of pieces; throws as distribution() does.
double expected_length(const Merges& merges, const Word& word, double p, std::size_t most);

}  // namespace bpe
