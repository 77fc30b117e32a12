// Tables of frequent words: from a word's random number straight to its segmentation.
//
// draw.h makes the segmentation of a word a function of the word's first 64 random bits (and, on rare long paths, of
// more). That function is constant on intervals. A table holds the intervals of one word that are wide enough to be
// worth it; a number in none of them is left to the word's chart, or to draw(), which give the same. So a table never
// changes what is drawn, only how fast, and one may keep as many or as few as memory allows.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>

#include "draw.h"

namespace bpe {

// Which segmentation: where its ids are in the table and how many there are.
using Find = u32;
constexpr Find kUnresolved = 0xFFFFFFFF;
constexpr u32 kMostIds = 254;
constexpr std::size_t kCopied = 4;  // ids that are always copied, so that so many can be read past the end of the last
constexpr std::int64_t kNoId = -1;
inline u32 ids_begin(Find find) { return find >> 8; }
inline u32 ids_count(Find find) { return find & 0xFF; }

// For tables of pieces themselves, where there is no dictionary.
inline std::int64_t piece_itself(const Word&, Piece piece) { return piece; }

class Tables {
 public:
  // What is kept for a word: 0 is nothing. The lower bits say what it is: so many bits of the number choose
  // a bucket of the table, or there is none.
  using Ref = u32;

  // `memory`, in bytes, is never exceeded. It is taken from the system as it fills.
  explicit Tables(std::size_t memory);

  // Where one thread adds.
  struct Shelf {
    std::size_t next, end;
  };
  // Divides what is free between so many threads.
  std::vector<Shelf> shelves(std::size_t count);

  // Makes a table for `word` with its intervals of width `finest` or more, of a whole of 1. The ids
  // of a piece are given by id(word, piece): a number, or kNoId for a piece that leaves no trace.
  // Nothing is kept, and 0 returned, if there is no room, or if it would answer less than `least` of all numbers.
  template <class Id>
  Ref add(Shelf& shelf, const Merges& merges, const Word& word, const Dropout& dropout, double finest, double least,
          Id&& id, Scratch& scratch);
  static constexpr double kLeast = 0.5;  // below it, a table is hardly repaid
  // Keeps no more than the chart of the word, and the ids of the way on which nothing is dropped, if it is likely.
  template <class Id>
  Ref add_chart(Shelf& shelf, const Merges& merges, const Word& word, const Dropout& dropout, Id&& id,
                Scratch& scratch);

  // Keeps no more than the ids of the way on which nothing is dropped, for which the range is as large as this, of
  // Decoder::kWhole.
  Ref add_likely(Shelf& shelf, u64 range, const u32* ids, std::size_t count) {
    return count > kMostIds ? 0 : write(shelf, last_to_drop(range), ids, count, {});
  }

  static bool is_table(Ref ref) { return ref && (ref & kBits) != kNoTable; }
  // What Chart::draw takes; null if there is none. For a word with a table it is kept, too.
  const u32* chart(Ref ref) const {
    const u32* const kept = at(ref);
    return kept[kChartAt] ? kept + kept[kChartAt] : nullptr;
  }

  Find find(Ref ref, u64 first) const {
    const Find likely = find_likely(ref, first);
    return likely != kUnresolved || !is_table(ref) ? likely : find_in(ref, first, bucket(ref, first));
  }
  // The same in steps, where words are many. What a step fetches into the cache, the next one reads.
  void prefetch(Ref ref) const { __builtin_prefetch(at(ref)); }
  // If nothing is dropped, it is found here.
  Find find_likely(Ref ref, u64 first) const {
    const u32* const kept = at(ref);
    return first >> 32 > kept[kLast] ? kept[kLikely] : kUnresolved;
  }
  void prefetch_rest(Ref ref, u64 first) const {
    if (is_table(ref)) return __builtin_prefetch(bucket_of(ref, first));
    for (std::size_t line = 1; line <= kChartLines; ++line) __builtin_prefetch(at(ref) + 16 * line);
  }
  u32 bucket(Ref ref, u64 first) const {
    const u32 bucket = *bucket_of(ref, first);
    __builtin_prefetch(at(ref) + (bucket < kSearch ? ids_begin(bucket) : bucket & ~kSearch));
    return bucket;
  }
  Find find_in(Ref ref, u64 first, u32 bucket) const {
    if (bucket < kSearch) return bucket;
    const u32* const table = at(ref);
    const Find find = search(table, static_cast<u32>(first >> 32), bucket);
    __builtin_prefetch(table + (find == kUnresolved ? table[kChartAt] : ids_begin(find)));
    return find;
  }
  const u32* ids(Ref ref) const { return at(ref); }

  // For tests: the last number, of 2^32, that may drop something.
  u64 last_to_drop(Ref ref) const { return at(ref)[kLast]; }
  // For tests: the ids that the table itself answers with, and the share of the numbers for which it
  // surely does (where an interval begins, a share of 2^-32 may be left to draw()).
  std::vector<std::pair<std::vector<u32>, double>> probabilities(Ref ref) const;

  // What a shelf holds, in bytes.
  static std::size_t memory(const Shelf& from, const Shelf& to) { return (to.next - from.next) * sizeof(u32); }

 private:
  // What is kept of a word is, in 32-bit words: the last number that may drop something; the find of all beyond it,
  // which is the likeliest, and so is the first in the ids; where the buckets are, and where the chart is; ids. Of most
  // words, all that is read lies in one line of the cache.
  // Then, of a table: the number of intervals; buckets for the leading bits of the number, as far as something may be
  // dropped; intervals as pairs (first number, find) with a last one that is never reached.
  // A bucket is a find, if it lies within one interval; else kSearch and where to start looking.
  // Then the chart.
  enum Head { kLast, kLikely, kBucketsAt, kChartAt, kHead };
  static constexpr std::size_t kChartLines = 8;  // of the cache
  static constexpr std::size_t kStep = 8;        // where something begins: half of a line of the cache
  static constexpr u32 kSearch = 0x80000000;
  static constexpr u32 kBits = 31, kNoTable = 31;
  static constexpr std::size_t kUnit = 4;  // in which a reference counts
  static constexpr std::size_t kMostWords = (std::size_t{1} << 27) * kUnit;  // 2 GiB: what a reference can say
  static_assert(kStep % kUnit == 0);

  const u32* at(Ref ref) const { return words_.get() + static_cast<std::size_t>(ref >> 5) * kUnit; }
  const u32* bucket_of(Ref ref, u64 first) const {
    const u32* const table = at(ref);
    return table + table[kBucketsAt] + number_of_bucket(first >> 32, ref & kBits);
  }
  static std::size_t number_of_bucket(u64 number, u32 bits) { return number >> (32 - bits); }
  // Room for so many 32-bit words, at a place that a reference can name; nothing if the shelf is full.
  u32* room(Shelf& shelf, std::size_t size, u32 bits, Ref& ref);

  static Find search(const u32* table, u32 number, u32 bucket) {
    if (bucket == kUnresolved || number == 0xFFFFFFFF) return kUnresolved;
    const u32* interval = table + (bucket & ~kSearch);
    while (interval[2] <= number) interval += 2;
    // Where an interval begins is known to 32 bits here, and to 63 in draw(): leave a tie to it.
    return interval[0] == number ? kUnresolved : interval[1];
  }

  struct Interval {
    u64 begin;    // of 2^63
    u32 outcome;  // number in ids, or kUnresolved
  };
  // What a table is to hold.
  struct Plan {
    std::vector<Interval> intervals;
    std::vector<std::vector<u32>> ids;  // of each outcome
    u64 unresolved = 0;                 // of 2^63

    void add(u64 begin, u64 width, u32 outcome);
  };
  struct Cuts;
  struct Charted;
  struct Parts;
  // The plan of a word that has a chart.
  static Plan make_plan(const Dropout& dropout, u64 finest, const Chart& chart);
  // The plan of any other, and the pieces of each outcome.
  static Plan make_plan(const Merges& merges, const Word& word, const Dropout& dropout, u64 finest,
                        std::vector<std::vector<Piece>>& pieces);
  Ref write(Shelf& shelf, const Plan& plan, const std::vector<u32>& chart);
  // No table: the likeliest find, which has these ids, and a chart, if it is not empty.
  Ref write(Shelf& shelf, u32 last, const u32* ids, std::size_t count, const std::vector<u32>& chart);
  // The last number that may drop something. It is known to 32 bits here, and to 63 in draw(): a tie is left to it.
  static u32 last_to_drop(u64 range) { return static_cast<u32>((Decoder::kWhole - range) >> 31); }
  // Makes scratch.chart that of the word; false if there is none.
  template <class Id>
  static bool make_chart(const Merges& merges, const Word& word, Id&& id, Scratch& scratch) {
    const auto of_piece = [&](Piece piece) { return id(word, piece); };
    return start_symbols(merges, word, scratch) && scratch.chart.make(merges, scratch.symbols, of_piece);
  }
  // And scratch.kept what is kept of it.
  static void keep_chart(const Dropout& dropout, Scratch& scratch) {
    scratch.chart.likely_way(dropout, scratch.way);
    scratch.chart.write(scratch.way, dropout.rates(), scratch.kept);
  }

  struct Free {
    void operator()(u32* words) const { std::free(words); }
  };
  std::unique_ptr<u32[], Free> words_;
  std::size_t size_ = 0;
};

template <class Id>
Tables::Ref Tables::add(Shelf& shelf, const Merges& merges, const Word& word, const Dropout& dropout, double finest,
                        double least, Id&& id, Scratch& scratch) {
  const u64 width = static_cast<u64>(std::max(std::ldexp(finest, 63), static_cast<double>(Decoder::kLeast)));
  const bool has_chart = !dropout.never() && make_chart(merges, word, id, scratch);
  if (!has_chart && word.text.size() >= Tokens::kMost) return 0;
  std::vector<std::vector<Piece>> pieces;
  Plan plan = has_chart ? make_plan(dropout, width, scratch.chart) : make_plan(merges, word, dropout, width, pieces);
  if (std::ldexp(static_cast<double>(plan.unresolved), -63) > 1 - least) return 0;
  for (const auto& some : pieces) {
    plan.ids.emplace_back();
    for (const Piece piece : some) {
      const std::int64_t number = id(word, piece);
      if (number != kNoId) plan.ids.back().push_back(static_cast<u32>(number));
    }
  }
  scratch.kept.clear();
  if (has_chart && plan.unresolved) keep_chart(dropout, scratch);
  return write(shelf, plan, scratch.kept);
}

template <class Id>
Tables::Ref Tables::add_chart(Shelf& shelf, const Merges& merges, const Word& word, const Dropout& dropout, Id&& id,
                              Scratch& scratch) {
  if (dropout.never()) return add(shelf, merges, word, dropout, 1, kLeast, id, scratch);  // of the one segmentation
  if (!make_chart(merges, word, id, scratch)) return 0;
  keep_chart(dropout, scratch);
  std::vector<u32>& ids = scratch.ids;
  ids.clear();
  const bool is_likely = scratch.way.range;
  if (is_likely) scratch.chart.add_ids(scratch.way.left, ids);
  const u32 last = is_likely ? last_to_drop(scratch.way.range) : kUnresolved;
  return write(shelf, last, ids.data(), ids.size(), scratch.kept);
}

}  // namespace bpe
