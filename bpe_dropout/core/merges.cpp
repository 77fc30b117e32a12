#include "merges.h"

#include <stdexcept>
#include <unordered_map>

namespace bpe {

namespace {

const std::string kEndMark = "</w>";

bool ends_word(const std::string& symbol) {
  return symbol.size() >= kEndMark.size() &&
         symbol.compare(symbol.size() - kEndMark.size(), kEndMark.size(), kEndMark) == 0;
}

std::string without_end(const std::string& symbol) {
  return symbol.size() >= kEndMark.size() ? symbol.substr(0, symbol.size() - kEndMark.size()) : "";
}

// subword-nmt's treatment of pieces that are not in the vocabulary: merges are undone until all
// pieces are in it, or are characters.
class Unmerge {
 public:
  Unmerge(const std::vector<std::pair<std::string, std::string>>& pairs, bool marked, const std::string& separator,
          const std::unordered_set<std::string>& vocabulary)
      : marked_(marked), separator_(separator), vocabulary_(vocabulary) {
    // Of several pairs with the same concatenation, subword-nmt undoes the one whose last line in the
    // codes comes first.
    std::unordered_set<std::string> seen;
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      if (seen.insert(pair->first + ' ' + pair->second).second) {
        merged_from_[pair->first + pair->second] = &*pair;
      }
    }
  }

  void split(const std::string& piece, bool final, std::vector<std::string>& out) const {
    std::vector<std::pair<std::string, bool>> todo{{piece, final}};
    while (!todo.empty()) {
      auto [text, at_end] = std::move(todo.back());
      todo.pop_back();
      const bool known = vocabulary_.count(at_end ? text : text + separator_) != 0;
      const bool with_mark = at_end && marked_;
      const auto found = merged_from_.find(with_mark ? text + kEndMark : text);
      if (known || text.empty() || found == merged_from_.end()) {
        out.push_back(text);
        continue;
      }
      const auto& [left, right] = *found->second;
      todo.emplace_back(with_mark ? without_end(right) : right, at_end);
      todo.emplace_back(left, false);
    }
  }

 private:
  const bool marked_;  // "</w>" is part of the merges
  const std::string& separator_;
  const std::unordered_set<std::string>& vocabulary_;
  std::unordered_map<std::string, const std::pair<std::string, std::string>*> merged_from_;
};

void set_at(std::vector<Symbol>& symbols, u32 c, Symbol symbol) {
  if (symbols.size() <= c) symbols.resize(c + 1, kForeign);
  symbols[c] = symbol;
}

}  // namespace

Merges::Merges(const std::vector<std::pair<std::string, std::string>>& pairs, End end, std::string separator,
               const std::optional<std::unordered_set<std::string>>& vocabulary,
               const std::optional<std::vector<std::string>>& results)
    : end_of_word_(end), one_by_one_(results.has_value()), separator_(std::move(separator)) {
  if (pairs.size() > kRankMask) throw std::length_error("a merge table of over 4 million merges");
  int bits = 6;
  while ((std::size_t{1} << bits) < pairs.size() * 2) ++bits;
  slots_.assign(std::size_t{1} << bits, kNoSlot);
  mask_ = slots_.size() - 1;
  shift_ = 64 - bits;
  sieve_.resize(std::size_t{1} << (bits + 2 - 6));
  sieve_shift_ = shift_ - 2;

  // What a merge makes is numbered as the merge is, and all other symbols from there on. If two merges make the
  // same, the number of the second is not used.
  Words known;
  std::vector<Symbol> numbers;          // by the number in `known`
  std::vector<std::string> symbols(pairs.size());
  const auto add = [&](const std::string& text) {
    const u32 number = known.add(text);
    if (number == numbers.size()) {
      numbers.push_back(static_cast<Symbol>(symbols.size()));
      symbols.push_back(text);
    }
    return numbers[number];
  };
  for (const auto& [left, right] : pairs) {
    const Symbol rank = static_cast<Symbol>(results_.size());
    const std::string merged = results ? results->at(rank) : left + right;
    const u32 number = known.add(merged);
    if (number == numbers.size()) {
      numbers.push_back(rank);
      symbols[rank] = merged;
    }
    results_.push_back(numbers[number]);
  }
  made_again_.resize(pairs.size() / 64 + 1);
  for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
    if (results_[rank] != rank) made_again_[rank / 64] |= u64{1} << (rank % 64);
    const Symbol left = add(pairs[rank].first), right = add(pairs[rank].second);
    insert(static_cast<u64>(left) << kSymbolBits | right, static_cast<Rank>(rank));
  }
  for (std::size_t s = 0, all = symbols.size(); s < all; ++s) {
    if (ends_word(symbols[s]) && symbols[s].size() > kEndMark.size()) add(without_end(symbols[s]));
  }

  if (symbols.size() > (1u << kSymbolBits)) throw std::length_error("a merge table of over 2 million symbols");

  for (u32 s = 0; s < symbols.size(); ++s) {
    const std::string& text = symbols[s];
    if (const auto c = only_character(text)) set_at(within_, *c, s);
    if (!ends_word(text)) continue;
    if (text == kEndMark) end_ = s;
    if (const auto c = only_character(without_end(text))) set_at(final_, *c, s);
  }

  std::optional<Unmerge> unmerge;
  if (vocabulary && !vocabulary->empty()) unmerge.emplace(pairs, end != End::kNone, separator_, *vocabulary);
  Words pieces;
  for (int place = 0; place < kPlaces; ++place) {
    Spelling& spelling = spellings_[place];
    const bool final = place != kWithin;
    const bool joined = place == kWithin || place == kEndJoined || place == kBareEndJoined;
    for (u32 s = 0; s < symbols.size(); ++s) {
      spelling.begins.push_back(static_cast<u32>(spelling.pieces.size()));
      std::string text = symbols[s];
      if (text.empty()) continue;
      if ((place == kEnd || place == kEndJoined) && ends_word(text)) text = without_end(text);
      std::vector<std::string> split;
      if (unmerge) {
        unmerge->split(text, final, split);
      } else {
        split.push_back(text);
      }
      for (std::size_t i = 0; i < split.size(); ++i) {
        const bool goes_on = joined || i + 1 < split.size();
        spelling.pieces.push_back(pieces.add(goes_on ? split[i] + separator_ : split[i]));
      }
    }
    spelling.begins.push_back(static_cast<u32>(spelling.pieces.size()));
  }
  for (u32 p = 0; p < pieces.size(); ++p) strings_.emplace_back(pieces[p]);
  const u32 empty = pieces.find("");
  if (empty != Words::kNone) empty_ = empty;
}

void Merges::insert(u64 pair, Rank rank) {
  const u64 hash = pair * kSpread;
  const u64 bit = hash >> sieve_shift_;
  sieve_[bit / 64] |= u64{1} << (bit % 64);
  for (std::size_t at = hash >> shift_;; at = (at + 1) & mask_) {
    if (slots_[at] >> kRankBits == pair) return;
    if (slots_[at] == kNoSlot) {
      slots_[at] = pair << kRankBits | static_cast<u64>(rank);
      return;
    }
  }
}

void Merges::start(std::string_view text, std::vector<Symbol>& symbols) const {
  symbols.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const u32 c = next_character(at);
    const auto& known = end_of_word_ == End::kSuffix && at == end ? final_ : within_;
    const Symbol symbol = c < known.size() ? known[c] : kForeign;
    symbols.push_back(symbol == kForeign ? kForeign | c : symbol);
  }
  if (end_of_word_ == End::kSymbol) symbols.push_back(end_);
}

void Merges::pieces(const Symbol* symbols, std::size_t size, bool last, std::vector<Piece>& out) const {
  Place place = last ? kEnd : kEndJoined;
  const bool end_apart = end_of_word_ == End::kSymbol && symbols[size - 1] == end_;
  if (end_apart) --size;
  if (end_apart || end_of_word_ == End::kNone) place = last ? kBareEnd : kBareEndJoined;
  for (std::size_t i = 0; i + 1 < size; ++i) put(symbols[i], kWithin, out);
  put(symbols[size - 1], place, out);
}

void Merges::put(Symbol symbol, Place place, std::vector<Piece>& out) const {
  if (symbol & kForeign) {
    out.push_back(symbol | (place == kEnd || place == kBareEnd ? 0 : kJoined));
    return;
  }
  const Spelling& spelling = spellings_[place];
  for (u32 i = spelling.begins[symbol]; i < spelling.begins[symbol + 1]; ++i) {
    out.push_back(spelling.pieces[i]);
  }
}

void Merges::append(const Word& word, Piece piece, std::string& out) const {
  if (piece & kForeign) {
    append_character(out, piece & 0x1FFFFF);
  } else if (piece & kFixed) {
    out += (*word.parts)[piece & ~(kFixed | kJoined)].text;
  } else {
    out += strings_[piece];
    return;
  }
  if (piece & kJoined) out += separator_;
}

}  // namespace bpe
