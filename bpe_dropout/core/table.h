// Tables of frequent words: from a word's random number straight to its segmentation.
//
// draw.h makes the segmentation of a word a function of the word's first 64 random bits (and, on
// rare long paths, of more). That function is constant on intervals. A table holds the intervals of
// one word that are wide enough to be worth it; a number in none of them is left to draw(). So a
// table never changes what is drawn, only how fast, and one may keep as many or as few as memory
// allows.
#pragma once

#include <map>

#include "draw.h"

namespace bpe {

// Which segmentation: where its ids are in the table and how many there are.
using Find = u32;
constexpr Find kUnresolved = 0xFFFFFFFF;
constexpr u32 kMostIds = 254;
constexpr std::int64_t kNoId = -1;
inline u32 ids_begin(Find find) { return find >> 8; }
inline u32 ids_count(Find find) { return find & 0xFF; }

// For tables of pieces themselves, where there is no dictionary.
inline std::int64_t piece_itself(const Word&, Piece piece) { return piece; }

class Tables {
 public:
  // A reference to a table: 0 is none.
  using Ref = u32;

  // Makes a table for `word` with its intervals of width `finest` or more, of a whole of 1. The ids
  // of a piece are given by id(word, piece): a number, or kNoId for a piece that leaves no trace.
  template <class Id>
  Ref add(const Merges& merges, const Word& word, const Dropout& dropout, double finest, Id&& id);

  Find find(Ref ref, u64 first) const {
    const u32* const table = at(ref);
    const u32 bits = ref & 31;
    const u32 number = static_cast<u32>(first >> 32);
    const u32 bucket = table[1 + (static_cast<u64>(number) >> (32 - bits))];
    return bucket < kSearch ? bucket : search(table, number, bucket);
  }
  const u32* ids(Ref ref) const { return at(ref); }
  void prefetch(Ref ref, u64 first) const {
    __builtin_prefetch(at(ref) + 1 + ((first >> 32) >> (32 - (ref & 31))));
  }

  // Takes in the tables of another; its references move up by what is returned. Nothing is taken in, or
  // returned, if the references would not fit.
  std::optional<Ref> append(const Tables& other) {
    if ((words_.size() + other.words_.size()) / 4 >= kMostTables) return {};
    const Ref shift = static_cast<Ref>(words_.size() / 4 << 5);
    words_.insert(words_.end(), other.words_.begin(), other.words_.end());
    return shift;
  }

  // For tests: the ids that the table itself answers with, and the share of the numbers for which it
  // surely does (where an interval begins, a share of 2^-32 may be left to draw()).
  std::vector<std::pair<std::vector<u32>, double>> probabilities(Ref ref) const;

  std::size_t memory() const { return words_.size() * sizeof(u32); }
  void clear() { words_.clear(); }

 private:
  // A table is, in 32-bit words: the number of intervals; buckets for the leading bits of the
  // number; intervals as pairs (first number, find) with a last one that is never reached; ids.
  // A bucket is a find, if it lies within one interval; else kSearch and where to start looking.
  static constexpr u32 kSearch = 0x80000000;
  static constexpr std::size_t kMostTables = std::size_t{1} << 27;  // of four 32-bit words: 2 GiB

  const u32* at(Ref ref) const { return words_.data() + static_cast<std::size_t>(ref >> 5) * 4; }

  static Find search(const u32* table, u32 number, u32 bucket) {
    if (bucket == kUnresolved || number == 0xFFFFFFFF) return kUnresolved;
    const u32* interval = table + (bucket & ~kSearch);
    while (interval[2] <= number) interval += 2;
    // Where an interval begins is known to 32 bits here, and to 63 in draw(): leave a tie to it.
    return interval[0] == number ? kUnresolved : interval[1];
  }

  struct Interval {
    u64 begin;    // of 2^63
    u32 outcome;  // number in outcomes, or kUnresolved
  };
  struct Plan {
    const Merges& merges;
    const Word& word;
    const Dropout& dropout;
    u64 finest;
    std::vector<Interval> intervals;
    std::map<std::vector<Piece>, u32> outcomes;
  };
  struct State;
  static void expand(Plan& plan, const State& state, u64 begin, u64 range);
  static void enter_part(Plan& plan, State& state, u64 begin, u64 range);
  static void emit(Plan& plan, u64 begin, u32 outcome);
  static Plan make_plan(const Merges& merges, const Word& word, const Dropout& dropout, double finest);
  Ref write(const Plan& plan, const std::vector<std::vector<u32>>& ids);

  std::vector<u32> words_;
};

template <class Id>
Tables::Ref Tables::add(const Merges& merges, const Word& word, const Dropout& dropout, double finest, Id&& id) {
  if (word.text.size() >= Tokens::kMost) return 0;
  const Plan plan = make_plan(merges, word, dropout, finest);
  std::vector<std::vector<u32>> ids(plan.outcomes.size());
  for (const auto& [pieces, outcome] : plan.outcomes) {
    std::vector<u32>& out = ids[outcome];
    for (const Piece piece : pieces) {
      const std::int64_t number = id(word, piece);
      if (number != kNoId) out.push_back(static_cast<u32>(number));
    }
  }
  return write(plan, ids);
}

}  // namespace bpe
