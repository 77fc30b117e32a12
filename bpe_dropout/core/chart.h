// The chart of a word: every token that merges can make of it, and every merge that can make one.
//
// A word that is drawn in each epoch need not ask in each epoch which of its pairs merge. A token is a span of the
// word, so a state of Algorithm 1 is the set of boundaries that are left between the characters, a bit for each; a
// merge takes one of them away, and is possible if that one and the two around it are left, and none in between. The
// merges of the chart stand in the order of their priority. So a step is to compare bits, eight merges at a time, to
// count the candidates that this finds, and to clear a bit: no pair is looked up, and few branches depend on chance.
// What is drawn is what draw() draws.
#pragma once

#include <array>

#include "merges.h"
#include "random.h"

namespace bpe {

class Chart {
 public:
  static constexpr std::size_t kMostCharacters = 64;

  // More than characters, since a vocabulary may take the end of a word apart, too.
  static constexpr std::size_t kMostIds = 2 * kMostCharacters;

  // Makes the chart of the word that starts from `symbols`; id(piece) gives the id of a piece. Returns false if there
  // is none: the word is too long or has too many merges, a token depends on how it was made (which is possible where
  // a tokenizer names what merges make), or a piece has no id, or one that is taken for kSeveral.
  template <class Id>
  bool make(const Merges& merges, const std::vector<Symbol>& symbols, Id&& id) {
    if (!find(merges, symbols)) return false;
    ids_.clear();
    for (Token& token : tokens_) {
      pieces_.clear();
      merges.pieces(token.symbol, token.end == size_, pieces_);
      token.ids = static_cast<u32>(ids_.size());
      for (const Piece piece : pieces_) {
        const std::int64_t number = id(piece);
        if (number < 0 || number & kSeveral) return false;
        ids_.push_back(static_cast<u32>(number));
      }
      token.ids_end = static_cast<u32>(ids_.size());
    }
    return true;
  }

  // A state of Algorithm 1: which boundaries are left. Merges have numbers, in the order of their priority.
  using State = u64;
  State start() const { return ~State{0} >> (64 - (size_ - 1)); }
  // The merges that are possible, and how many there are.
  using Candidates = std::array<u16, kMostCharacters>;
  std::size_t candidates(State left, Candidates& out) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < merges_.size(); ++i) {
      out[count] = static_cast<u16>(i);
      count += merges_[i].is_possible(left);
    }
    return count;
  }
  std::size_t rank(std::size_t merge) const { return merges_[merge].priority >> kBeginBits; }
  State after(State left, std::size_t merge) const { return left & ~bit(merges_[merge].middle); }
  // Adds the ids of a state.
  void add_ids(State left, std::vector<u32>& out) const;

  // The way on which nothing is dropped, as far as that is likely: the merges, the state that it leads to, and the
  // range, of Decoder::kWhole, in which it is gone to the end of the word; 0 if that is not likely.
  struct Way {
    std::vector<u16> merges;
    State left;
    u64 range;
  };
  void likely_way(const Dropout& dropout, Way& way) const;

  // The chart, to be kept, for draw().
  void write(const Way& way, bool with_ranks, std::vector<u32>& out) const;
  // Algorithm 1 by what write() wrote, to its end. Returns how many ids there are, and writes them to `out`, which has
  // room for kMostIds; null: the number alone.
  static u32 draw(const u32* chart, const Dropout& dropout, Decoder& decoder, std::int32_t* out);

 private:
  struct Token {
    Symbol symbol;
    u32 end;
    u32 ids, ids_end;  // in ids_
  };
  struct Merge {
    u64 priority;  // the rank, and where it begins
    State among, needed;
    u32 begin, middle, made;  // the last is the number of a token

    bool is_possible(State left) const { return (left & among) == needed; }
  };
  static constexpr int kBeginBits = 32;
  static constexpr u32 kSeveral = kFixed;  // which no piece of a chart has: what glossaries protect has no chart

  // The boundary before a character. Those before the first and after the last are always left.
  State bit(u32 before) const { return before == 0 || before == size_ ? 0 : State{1} << (before - 1); }
  // All that are within so many characters.
  static State boundaries_within(u32 characters) {
    return characters < 2 ? 0 : (State{1} << (characters - 1)) - 1;
  }
  bool find(const Merges& merges, const std::vector<Symbol>& symbols);
  template <class Width>
  void write_merges(const Way& way, bool with_ranks, std::vector<u32>& out) const;
  template <class Width, class D>
  static u32 draw_here(const u32* chart, const D& dropout, Decoder& decoder, std::int32_t* out);
  template <class Width, class D>
  static u32 draw_avx2(const u32* chart, const D& dropout, Decoder& decoder, std::int32_t* out);
  template <class D>
  static u32 draw_on(const u32* chart, const D& dropout, Decoder& decoder, std::int32_t* out);

  u32 size_ = 0;  // in characters
  std::vector<Token> tokens_;
  std::vector<u32> first_;  // for each character, the first of the tokens that begin with it
  std::vector<Merge> merges_;
  std::vector<u32> ids_;
  std::vector<Piece> pieces_;  // work space
};

}  // namespace bpe
