// Algorithm 1: one word, one segmentation; and the exact probabilities of all of them.
//
// A merge is an occurrence: two adjacent symbols at a position. At each step every candidate is
// dropped with probability p, and the survivor of highest priority (of equal priority, the
// leftmost) is applied. Walking the candidates in that order and stopping at the first survivor is
// the same thing, and needs one decision a step. Where each merge has a rate of its own, the same holds with these
// rates. With p = 0 the rule is that of the merges: all occurrences of the best pair at once, as in subword-nmt, or
// one after the other, as in Hugging Face's.
#pragma once

#include <cstring>
#include <stdexcept>

#include "chart.h"
#include "processor.h"

namespace bpe {

// The tokens of a part and the merges that are possible between them. A token stays at the position of
// its first character. keys_[i] holds the rank of the merge of token i with the next, and i, so that the
// least key is the candidate of highest priority, and of equals the leftmost. A flat array, scanned eight
// at a time: for ordinary words that is faster than any cleverer structure.
class Tokens {
 public:
  static constexpr std::size_t kMost = 128;

  Tokens() = default;
  Tokens(const Tokens& other) { *this = other; }
  Tokens& operator=(const Tokens& other);

  void start(const Merges& merges, const std::vector<Symbol>& symbols);

  std::size_t candidates() const { return candidates_; }
  // Applies the candidate that has `before` others ahead of it in priority.
  void merge(const Merges& merges, std::size_t before);
  // The candidate that comes after the one with this key in priority; after kNone, the first. The key of a candidate
  // has its rank.
  static constexpr u32 kNone = 0xFFFFFFFF;  // no merge
  u32 next_candidate(u32 key) const { return least_from(key + 1); }
  static std::size_t rank_of(u32 key) { return key >> kPositionBits; }
  // Algorithm 1, to its end. `decoder` may be null if p is 0.
  void run(const Merges& merges, const Dropout& dropout, Decoder* decoder);

  // Calls token(symbol) for each token but the last, and last(symbol) for that.
  template <class F, class G>
  void for_each(F&& token, G&& last) const {
    std::size_t i = 0;
    for (; links_.next[i] < size_; i = links_.next[i]) token(symbols_[i]);
    last(symbols_[i]);
  }
  // All of them.
  void symbols(std::vector<Symbol>& out) const {
    out.clear();
    const auto put = [&](Symbol symbol) { out.push_back(symbol); };
    for_each(put, put);
  }

 private:
  static constexpr std::size_t kAtOnce = 8;
  static constexpr int kPositionBits = 7;
  static constexpr u32 kPositionMask = (1 << kPositionBits) - 1;
  static constexpr std::size_t padded(std::size_t size) { return (size + kAtOnce - 1) / kAtOnce * kAtOnce; }

  void link();

  // These are compiled into each version of run() that there is for a kind of processor.
  BPE_HERE u32 least_from(u32 key) const {
    typedef u32 Eight __attribute__((vector_size(32)));
    Eight least, some;
    const Eight from = {key, key, key, key, key, key, key, key};
    std::memcpy(&least, keys_, sizeof least);
    least -= from;  // what is less than `key` wraps around, and is large
    for (std::size_t i = kAtOnce; i < size_; i += kAtOnce) {
      std::memcpy(&some, keys_ + i, sizeof some);
      some -= from;
      least = some < least ? some : least;
    }
    typedef u32 Four __attribute__((vector_size(16)));
    Four low, high;
    std::memcpy(&low, &least, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&least) + sizeof low, sizeof high);
    low = low < high ? low : high;
    return key + std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
  }
  BPE_HERE void set(const Merges& merges, std::size_t i, std::size_t next) {
    const Rank rank = merges.rank(symbols_[i], symbols_[next]);
    const u32 key = rank == kNoMerge ? kNone : static_cast<u32>(rank) << kPositionBits | static_cast<u32>(i);
    candidates_ += static_cast<std::size_t>(key != kNone) - static_cast<std::size_t>(keys_[i] != kNone);
    keys_[i] = key;
  }
  BPE_HERE void unset(std::size_t i) {
    candidates_ -= keys_[i] != kNone;
    keys_[i] = kNone;
  }
  // Token i becomes what it and the next are merged to.
  BPE_HERE void apply(const Merges& merges, std::size_t i) {
    const std::size_t right = links_.next[i], after = links_.next[right];
    symbols_[i] = merges.result(static_cast<Rank>(rank_of(keys_[i])));
    links_.next[i] = static_cast<u16>(after);
    links_.previous[after] = static_cast<u16>(i);
    unset(right);
    if (after < size_) {
      set(merges, i, after);
    } else {
      unset(i);
    }
    if (i > 0) set(merges, links_.previous[i], i);
  }
  BPE_HERE void merge_here(const Merges& merges, std::size_t before) {
    u32 key = least_from(0);
    for (; before > 0; --before) key = least_from(key + 1);
    apply(merges, key & kPositionMask);
  }
  // A step of Algorithm 1: applies the first candidate that survives, and says whether there is one.
  BPE_HERE bool step(const Merges& merges, const Dropout& dropout, Decoder& decoder) {
    const std::size_t dropped = decoder.dropped(dropout, candidates_);
    if (dropped == candidates_) return false;
    merge_here(merges, dropped);
    return true;
  }
  BPE_HERE bool step(const Merges& merges, const Rates& rates, Decoder& decoder) {
    u32 key = kNone;
    const std::size_t dropped = decoder.dropped_by_rate(candidates_, [&] {
      key = least_from(key + 1);
      return rates.fraction_of(rank_of(key));
    });
    if (dropped == candidates_) return false;
    apply(merges, key & kPositionMask);
    return true;
  }
  // A step of plain BPE: all occurrences of the best pair that do not overlap, from the left, or only the first.
  BPE_HERE void merge_best(const Merges& merges) {
    const u32 best = least_from(0), rank = best >> kPositionBits;
    if (merges.one_by_one()) return apply(merges, best & kPositionMask);
    for (std::size_t i = 0; i < size_; i = links_.next[i]) {
      if (keys_[i] >> kPositionBits == rank) apply(merges, i);
    }
  }
  // D: Dropout, where all merges have the same p, or Rates.
  template <class D>
  BPE_HERE void run_here(const Merges& merges, const D& dropout, Decoder* decoder) {
    while (candidates_) {
      if (dropout.never()) {
        merge_best(merges);
        continue;
      }
      if (!step(merges, dropout, *decoder)) break;
    }
  }
  template <class D>
  void run_avx2(const Merges& merges, const D& dropout, Decoder* decoder);
  template <class D>
  void run_on(const Merges& merges, const D& dropout, Decoder* decoder);

  // The position of the next token (of the last: size_), and of the one before (of the first: never read).
  struct Links {
    u16 next[kMost], previous[kMost + 1];
  };

  std::size_t size_ = 0;  // at the start
  std::size_t candidates_ = 0;
  alignas(32) u32 keys_[kMost];
  Symbol symbols_[kMost];
  Links links_;
};

// The same for long words: a linked list, and the candidates in sorted blocks, so that to add, to remove
// and to find the k-th are all cheap, however many there are.
class LongTokens {
 public:
  LongTokens(const Merges& merges, std::vector<Symbol>& symbols);

  // Algorithm 1, to its end. Leaves the tokens, in their order, in the vector that they came in.
  void run(const Merges& merges, const Dropout& dropout, Decoder* decoder);

 private:
  static constexpr std::size_t kFill = 256;
  static u64 key(Rank rank, std::size_t i) { return static_cast<u64>(rank) << 32 | i; }

  u64 candidate(std::size_t k) const;
  std::size_t dropped(const Dropout& dropout, Decoder& decoder) const;
  std::size_t block_of(u64 key) const;  // the last block that begins at or before `key`, or the first
  void insert(u64 key);
  void erase(u64 key);
  void set(std::size_t i, Rank rank);
  void apply(const Merges& merges, std::size_t i);
  void merge_best(const Merges& merges);

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
  Chart chart;
  Chart::Way way;
  std::vector<u32> kept;  // of the chart
  std::vector<u32> ids;
};

// Makes scratch.symbols those that `word` starts from, if they are all that there is to say of a segmentation: where
// the word is of several parts, one character or very long, it returns false. start_word() makes scratch.tokens of
// them, too.
bool start_symbols(const Merges& merges, const Word& word, Scratch& scratch);
bool start_word(const Merges& merges, const Word& word, Scratch& scratch);

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
std::vector<Outcome> distribution(const Merges& merges, const Word& word, const Dropout& dropout, std::size_t most);

// The mean number of pieces; throws as distribution() does.
double expected_length(const Merges& merges, const Word& word, const Dropout& dropout, std::size_t most);

}  // namespace bpe
