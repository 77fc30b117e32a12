#include "literal.h"

namespace bpe {

namespace {

constexpr auto before = [](const auto& times, Pairs::Number pair) { return times.pair < pair; };

}  // namespace

bool LiteralWords::are_needed(std::string_view word) {
  return word.find("</w>") != std::string_view::npos || holds_space(word);
}

std::int32_t LiteralWords::take(u32 word, Pairs::Number pair) {
  auto& pairs = words_[word].pairs;
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), pair, before);
  if (at == pairs.end() || at->pair != pair) return 0;
  const std::int32_t times = at->times;
  pairs.erase(at);
  return times;
}

void LiteralWords::change(u32 word, Symbol left, Symbol right, int by) {
  const Pairs::Number pair = pairs_.add(left, right);
  pairs_.change(pair, by * words_[word].count);
  auto& pairs = words_[word].pairs;
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), pair, before);
  if (at == pairs.end() || at->pair != pair) {
    pairs.insert(at, {pair, by});
    if (indices_.size() <= pair) indices_.resize(std::max<std::size_t>(pair + 1, pairs_.size()));
    indices_[pair].push_back(word);
  } else if ((at->times += by) == 0) {
    pairs.erase(at);
  }
}

void LiteralWords::add(std::vector<Symbol> symbols, i64 count) {
  const u32 word = static_cast<u32>(words_.size());
  words_.push_back({std::move(symbols), {}, count});
  const auto& added = words_.back().symbols;
  for (std::size_t i = 0; i + 1 < added.size(); ++i) change(word, added[i], added[i + 1], 1);
}

// For the expression: whether `part` is all of a symbol, or what follows some white space in it to its end.
bool LiteralWords::ends_with(Symbol symbol, Symbol part) const {
  if (symbol == part) return true;
  if (!spellings_.has_space(symbol)) return false;
  const std::string_view text = spellings_[symbol], end = spellings_[part];
  if (text.size() <= end.size() || text.substr(text.size() - end.size()) != end) return false;
  const char* const stop = text.data() + text.size() - end.size();
  const char* at = stop;
  do --at;
  while (at > text.data() && (static_cast<u8>(*at) & 0xC0) == 0x80);
  return space_size(at, stop) != 0;
}

bool LiteralWords::begins_with(Symbol symbol, Symbol part) const {
  if (symbol == part) return true;
  if (!spellings_.has_space(symbol)) return false;
  const std::string_view text = spellings_[symbol], begin = spellings_[part];
  if (text.size() <= begin.size() || text.substr(0, begin.size()) != begin) return false;
  return space_size(text.data() + begin.size(), text.data() + text.size()) != 0;
}

// It matches across the space between two symbols, from left to right, and never twice the same text.
void LiteralWords::replace(const std::vector<Symbol>& symbols, Symbol left, Symbol right, std::vector<Symbol>& out) {
  out.clear();
  const std::size_t both = spellings_[left].size() + spellings_[right].size();
  bool matched = false;  // at the space before
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const bool matches = i + 1 < symbols.size() && ends_with(symbols[i], left) && begins_with(symbols[i + 1], right) &&
                         (!matched || spellings_[symbols[i]].size() >= both);
    if (matched || matches) joined_ += spellings_[symbols[i]];
    if (!matches) {
      out.push_back(matched ? spellings_.add(joined_) : symbols[i]);
      joined_.clear();
    }
    matched = matches;
  }
}

void LiteralWords::merge_in(u32 word, Symbol left, Symbol right, Symbol merged) {
  replace(words_[word].symbols, left, right, replaced_);
  words_[word].symbols.swap(replaced_);
  const std::vector<Symbol>&old = replaced_, &now = words_[word].symbols;
  for (std::size_t i = 0; i + 1 < old.size();) {
    if (old[i] != left || old[i + 1] != right) {
      ++i;
      continue;
    }
    if (i > 0) change(word, old[i - 1], old[i], -1);
    // If the pair follows at once, the symbols between are counted with that one.
    if (i + 2 < old.size() && (old[i + 2] != left || i + 3 >= old.size() || old[i + 3] != right)) {
      change(word, old[i + 1], old[i + 2], -1);
    }
    i += 2;
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] != merged) continue;
    if (i > 0) change(word, now[i - 1], now[i], 1);
    if (i + 1 < now.size() && now[i + 1] != merged) change(word, now[i], now[i + 1], 1);
  }
}

}  // namespace bpe
