// Words in which subword-nmt's learner counts pairs that are not there, or misses some, followed to the letter.
//
// It replaces pairs by a regular expression in the word's symbols with spaces between them, where white space ends a
// symbol. A character such as U+3000 or U+00A0 is within a word, but ends a symbol for the expression: merging "a b"
// makes one symbol of "x\u3000a" and "b", without any change of counts. And after a merge, it counts the neighbours
// of all symbols that have the new string, also of those that had it before. With "</w>" among a word's characters,
// a symbol within the word can have the string of one at its end.
//
// In words without either, symbols of the same string have been merged from the same pairs in the same order, since
// what is around them has no influence on that; so all of them are new at once. There, counts are right, and a word is
// changed where the pair is and nowhere else (learner.h).
#pragma once

#include "pairs.h"

namespace bpe {

class LiteralWords {
 public:
  LiteralWords(Spellings& spellings, Pairs& pairs) : spellings_(spellings), pairs_(pairs) {}

  // Whether a word has to be one of these.
  static bool are_needed(std::string_view word);

  // Adds a word and counts its pairs.
  void add(std::vector<Symbol> symbols, i64 count);
  bool empty() const { return words_.empty(); }
  // Merges a pair into a symbol, and changes the counts of the pairs. `tick` is called for each word.
  template <class F>
  void merge(Pairs::Number pair, Symbol merged, F&& tick) {
    if (pair >= indices_.size()) return;
    const std::vector<u32> listed = std::move(indices_[pair]);
    indices_[pair].clear();
    for (const u32 word : listed) {
      if (take(word, pair) < 1) continue;
      merge_in(word, pairs_[pair].left, pairs_[pair].right, merged);
      tick(words_[word].symbols.size());
    }
  }

 private:
  struct Times {
    Pairs::Number pair;
    std::int32_t times;
  };
  struct Listed {
    std::vector<Symbol> symbols;
    std::vector<Times> pairs;  // that are thought to be in the word, in the order of their numbers; none 0 times
    i64 count;
  };

  // How often a pair is thought to be in a word; it is no longer, then.
  std::int32_t take(u32 word, Pairs::Number pair);
  void change(u32 word, Symbol left, Symbol right, int by);
  void merge_in(u32 word, Symbol left, Symbol right, Symbol merged);
  // What the regular expression makes of a word.
  void replace(const std::vector<Symbol>& symbols, Symbol left, Symbol right, std::vector<Symbol>& out);
  bool ends_with(Symbol symbol, Symbol part) const;
  bool begins_with(Symbol symbol, Symbol part) const;

  Spellings& spellings_;
  Pairs& pairs_;
  std::vector<Listed> words_;
  // By pair: the words that it is thought to be in, and others that it was. With words_, subword-nmt's `indices`.
  std::vector<std::vector<u32>> indices_;
  std::vector<Symbol> replaced_;
  std::string joined_;
};

}  // namespace bpe
