// A merge table: which pairs of symbols merge, in which order, and what the pieces look like.
//
// Symbols are numbered strings, so that two ways to the same string are the same symbol, as in
// subword-nmt. A word enters as the symbols of its characters and leaves as pieces: strings with the
// separator where the word continues. Deliberately not here: reading files, regular expressions (both
// are Python's), and randomness (random.h, draw.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text.h"

namespace bpe {

using Symbol = u32;
using Rank = std::int32_t;

constexpr Rank kNoMerge = 0x7FFFFFFF;

// A character that the merge table does not know: this bit and its code point. It never merges.
constexpr Symbol kForeign = 0x80000000;
constexpr Symbol kForeignEnd = kForeign | 0x1FFFFF;  // "</w>", where the table does not know it

// A piece is a number: of a string that the merge table can produce; or kForeign and a code point,
// for a character by itself; or kFixed and the number of the word's part that a glossary protects.
// kJoined says, of the latter two, that the separator follows.
using Piece = u32;
constexpr Piece kFixed = 0x40000000;
constexpr Piece kJoined = 0x20000000;

// A word, or what glossaries leave of one: fixed parts are pieces as they are.
struct Part {
  std::string text;
  bool fixed;
};
struct Word {
  std::string_view text;
  const std::vector<Part>* parts = nullptr;  // null: the whole text is one part
};

// How the end of a word is marked: the last character carries "</w>" (codes of version 0.2), "</w>" is a
// symbol of its own (version 0.1), or not at all.
enum class End { kSuffix, kSymbol, kNone };

class Merges {
 public:
  // If a pair occurs twice, the first counts. `results` names what each pair becomes, if that is not its
  // concatenation: the merges of a Hugging Face tokenizer. Their plain BPE is one_by_one().
  Merges(const std::vector<std::pair<std::string, std::string>>& pairs, End end, std::string separator,
         const std::optional<std::unordered_set<std::string>>& vocabulary,
         const std::optional<std::vector<std::string>>& results = {});

  // Whether plain BPE, too, applies one occurrence of the best pair a step, and not all of them at once.
  bool one_by_one() const { return one_by_one_; }

  Rank rank(Symbol left, Symbol right) const {
    if ((left | right) & kForeign) return kNoMerge;
    const u64 pair = static_cast<u64>(left) << kSymbolBits | right;
    const u64 hash = pair * kSpread;
    const u64 bit = hash >> sieve_shift_;
    if (!(sieve_[bit / 64] >> (bit % 64) & 1)) return kNoMerge;
    for (std::size_t at = hash >> shift_;; at = (at + 1) & mask_) {
      const u64 slot = slots_[at];
      if (slot >> kRankBits == pair) return static_cast<Rank>(slot & kRankMask);
      if (slot == kNoSlot) return kNoMerge;
    }
  }
  Symbol result(Rank rank) const {
    const std::size_t number = static_cast<std::size_t>(rank);
    return made_again_[number / 64] >> (number % 64) & 1 ? results_[number] : static_cast<Symbol>(rank);
  }

  // The symbols that a part of more than one character starts from.
  void start(std::string_view text, std::vector<Symbol>& symbols) const;

  // Adds the pieces of a part's final symbols. `last`: the word ends with this part.
  void pieces(const Symbol* symbols, std::size_t size, bool last, std::vector<Piece>& out) const;

  // Appends a piece of `word` as text, with its separator. An empty piece is possible: subword-nmt
  // makes one where a vocabulary splits the "</w>" off a word, with codes of version 0.1.
  void append(const Word& word, Piece piece, std::string& out) const;
  bool empty(Piece piece) const { return piece == empty_; }

  std::size_t known_pieces() const { return strings_.size(); }

  // The same token by token, where a word of one part is spelled so: not with codes of version 0.1, whose last
  // token may be "</w>" alone.
  bool by_token() const { return end_of_word_ != End::kSymbol; }
  void pieces(Symbol symbol, bool last, std::vector<Piece>& out) const { put(symbol, place(last), out); }
  // The one piece of a symbol within a word, or at its end; nothing if it is spelled as several.
  std::optional<Piece> only_piece(Symbol symbol, bool last) const {
    const Spelling& spelling = spellings_[place(last)];
    const u32 begin = spelling.begins[symbol];
    if (spelling.begins[symbol + 1] != begin + 1) return {};
    return spelling.pieces[begin];
  }
  std::size_t symbols() const { return spellings_[kWithin].begins.size() - 1; }
  const std::string& separator() const { return separator_; }

 private:
  // A slot of the hash table is a pair and its rank in 64 bits, so that the table stays in the cache.
  static constexpr int kSymbolBits = 21, kRankBits = 22;
  static constexpr u64 kRankMask = (1ULL << kRankBits) - 1;
  static constexpr u64 kNoSlot = ~0ULL;
  // The place of a symbol decides how it is written: within a part; at its end, with "</w>" to take
  // off; at its end, with "</w>" already gone. The latter two twice: the word ends, or continues.
  enum Place { kWithin, kEnd, kBareEnd, kEndJoined, kBareEndJoined, kPlaces };
  struct Spelling {
    std::vector<u32> begins;
    std::vector<Piece> pieces;
  };

  static constexpr u64 kSpread = 0x9E3779B97F4A7C15ULL;
  void insert(u64 pair, Rank rank);
  Place place(bool last) const { return !last ? kWithin : end_of_word_ == End::kNone ? kBareEnd : kEnd; }
  void put(Symbol symbol, Place place, std::vector<Piece>& out) const;

  End end_of_word_;
  bool one_by_one_;
  std::string separator_;
  std::vector<u64> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
  // A bit for the hash of every pair. Most pairs of symbols are no merge, and most of those are found
  // out here, in a few kilobytes that stay in the nearest cache.
  std::vector<u64> sieve_;
  int sieve_shift_ = 0;
  std::vector<Symbol> results_;
  std::vector<u64> made_again_;  // a bit for every merge: its result is not numbered as it is
  std::vector<Symbol> within_, final_;  // by code point; beyond the end: foreign
  Symbol end_ = kForeignEnd;
  std::vector<std::string> strings_;  // of the known pieces
  Spelling spellings_[kPlaces];
  Piece empty_ = 0xFFFFFFFF;
};

}  // namespace bpe
