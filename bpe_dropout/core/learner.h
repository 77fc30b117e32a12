// Learns merges from words and how often they occur: the most frequent pair of adjacent symbols becomes a symbol, again
// and again. The merges are those of subword-nmt's learn_bpe, ties and all.
//
// All words are in one array, and each pair has a list of the places where it was seen: a merge visits those and no
// others, so its time depends on what it changes, however long words are. Lists are not corrected when a place is
// merged with its neighbour; it is found out when the list is read.
#pragma once

#include <functional>

#include "literal.h"

namespace bpe {

// Called now and then with the number of merges that are done. It may throw.
using Report = std::function<void(u64 done)>;

class Learner {
 public:
  // Words with single spaces between them, in any order, and the count of each. Pairs that occur fewer than
  // `min_frequency` times are not merged.
  Learner(std::string_view words, const i64* counts, i64 min_frequency, std::size_t threads, Report report);

  // The distinct symbols that words begin with: characters, and characters at the end of a word.
  std::size_t characters() const { return characters_; }

  // The next merges, up to so many in all.
  const std::vector<std::pair<std::string, std::string>>& learn(u64 merges);

 private:
  // A symbol that is next to places that a merge changes, on one side of them.
  struct Neighbour {
    i64 lost = 0;        // how often it no longer is a pair with one of the merged symbols
    i64 gained = 0;      // how often it now is a pair with the new symbol,
    u32 places = 0;      // and in how many places
    bool seen = false;
    u32* next = nullptr;  // where the next of these places is to be written, if at all
  };
  struct Side {
    std::vector<Neighbour> neighbours;  // by symbol
    std::vector<Symbol> seen;
    std::vector<std::pair<Symbol, u32>> places;
    void see(Symbol symbol, i64 count) {
      Neighbour& neighbour = neighbours[symbol];
      if (!neighbour.seen) seen.push_back(symbol);
      neighbour.seen = true;
      neighbour.lost += count;
      neighbour.gained += count;
      ++neighbour.places;
    }
    // Writes the places to their pairs, and forgets all.
    void write();
  };
  struct Weight {
    u32 begin;  // the first place of the words that occur so often
    i64 count;
  };

  void read(std::string_view words, const i64* counts);
  void count_pairs(std::size_t threads);
  void merge(Pairs::Number number);
  void merge_places(Pairs::Number number, Symbol merged);
  void change(Symbol left, Symbol right, i64 by);
  void gain(Symbol left, Symbol right, Neighbour& neighbour);
  void tick(std::size_t work) {
    work_ += work;
    if (work_ >= kWorkBetweenReports) report();
  }
  void report();

  static constexpr Symbol kEdge = 0xFFFFFFFF;    // before and after a word
  static constexpr Symbol kWithin = 0xFFFFFFFE;  // neither the first nor the last character of a symbol
  static constexpr std::size_t kWorkBetweenReports = 1 << 16;

  const i64 min_frequency_;
  const Report report_;
  std::size_t work_ = 0;
  Spellings spellings_;
  std::size_t characters_ = 0;
  Pairs pairs_{spellings_};
  LiteralWords literal_{spellings_, pairs_};
  bool keeps_rare_ = false;
  // All other words, the most frequent first, a place for each character: the first and the last of a symbol hold it.
  std::vector<Symbol> text_;
  std::vector<Weight> weights_;
  Side left_, right_;
  std::vector<std::pair<std::string, std::string>> merges_;
};

}  // namespace bpe
