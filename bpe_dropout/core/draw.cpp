#include "draw.h"

#include <map>

namespace bpe {

void Tokens::start(const Merges& merges, const std::vector<Symbol>& symbols) {
  size_ = symbols.size();
  candidates_ = 0;
  std::copy(symbols.begin(), symbols.end(), symbols_);
  std::fill_n(keys_, padded(size_), kNone);
  for (std::size_t i = 0; i + 1 < size_; ++i) set(merges, i, i + 1);
  link();
}

void Tokens::link() {
  static const Links at_the_start = [] {
    Links links;
    for (std::size_t i = 0; i < kMost; ++i) links.next[i] = static_cast<u16>(i + 1);
    for (std::size_t i = 0; i <= kMost; ++i) links.previous[i] = static_cast<u16>(i - 1);
    return links;
  }();
  // In pieces of a fixed size, which costs less than to copy just as much as there is.
  constexpr std::size_t kPiece = 16;
  static_assert(kMost % kPiece == 0);
  for (std::size_t i = 0; i < size_; i += kPiece) {
    std::memcpy(links_.next + i, at_the_start.next + i, kPiece * sizeof(u16));
    std::memcpy(links_.previous + i, at_the_start.previous + i, kPiece * sizeof(u16));
  }
}

Tokens& Tokens::operator=(const Tokens& other) {
  size_ = other.size_;
  candidates_ = other.candidates_;
  std::copy_n(other.symbols_, size_, symbols_);
  std::copy_n(other.keys_, padded(size_), keys_);
  links_ = other.links_;
  return *this;
}

void Tokens::merge(const Merges& merges, std::size_t before) { merge_here(merges, before); }

template <class D>
BPE_AVX2 void Tokens::run_avx2(const Merges& merges, const D& dropout, Decoder* decoder) {
  run_here(merges, dropout, decoder);
}

template <class D>
void Tokens::run_on(const Merges& merges, const D& dropout, Decoder* decoder) {
  if (uses_avx2()) return run_avx2(merges, dropout, decoder);
  run_here(merges, dropout, decoder);
}

void Tokens::run(const Merges& merges, const Dropout& dropout, Decoder* decoder) {
  if (const Rates* const rates = dropout.rates()) return run_on(merges, *rates, decoder);
  run_on(merges, dropout, decoder);
}

LongTokens::LongTokens(const Merges& merges, std::vector<Symbol>& symbols)
    : symbols_(symbols), ranks_(symbols.size(), kNoMerge), next_(symbols.size()), previous_(symbols.size()) {
  std::vector<u64> keys;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    next_[i] = i + 1;
    previous_[i] = i - 1;
    if (i + 1 < symbols.size()) ranks_[i] = merges.rank(symbols[i], symbols[i + 1]);
    if (ranks_[i] != kNoMerge) keys.push_back(key(ranks_[i], i));
  }
  std::sort(keys.begin(), keys.end());
  candidates_ = keys.size();
  for (std::size_t i = 0; i < keys.size(); i += kFill) {
    blocks_.emplace_back(keys.begin() + static_cast<std::ptrdiff_t>(i),
                         keys.begin() + static_cast<std::ptrdiff_t>(std::min(i + kFill, keys.size())));
  }
  if (blocks_.empty()) blocks_.emplace_back();
}

u64 LongTokens::candidate(std::size_t k) const {
  std::size_t block = 0;
  while (k >= blocks_[block].size()) k -= blocks_[block++].size();
  return blocks_[block][k];
}

std::size_t LongTokens::block_of(u64 key) const {
  const auto after = std::upper_bound(blocks_.begin() + 1, blocks_.end(), key,
                                      [](u64 k, const std::vector<u64>& block) { return k < block.front(); });
  return static_cast<std::size_t>(after - blocks_.begin()) - 1;
}

void LongTokens::insert(u64 key) {
  const std::size_t i = block_of(key);
  auto& block = blocks_[i];
  block.insert(std::lower_bound(block.begin(), block.end(), key), key);
  ++candidates_;
  if (block.size() < 2 * kFill) return;
  std::vector<u64> upper(block.begin() + kFill, block.end());
  block.resize(kFill);
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(upper));
}

void LongTokens::erase(u64 key) {
  const std::size_t i = block_of(key);
  auto& block = blocks_[i];
  block.erase(std::lower_bound(block.begin(), block.end(), key));
  --candidates_;
  if (block.empty() && blocks_.size() > 1) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
}

void LongTokens::set(std::size_t i, Rank rank) {
  if (ranks_[i] != kNoMerge) erase(key(ranks_[i], i));
  ranks_[i] = rank;
  if (rank != kNoMerge) insert(key(rank, i));
}

void LongTokens::apply(const Merges& merges, std::size_t i) {
  const std::size_t right = next_[i], after = next_[right];
  symbols_[i] = merges.result(ranks_[i]);
  set(right, kNoMerge);
  next_[i] = after;
  if (after < symbols_.size()) previous_[after] = i;
  set(i, after < symbols_.size() ? merges.rank(symbols_[i], symbols_[after]) : kNoMerge);
  if (i > 0) set(previous_[i], merges.rank(symbols_[previous_[i]], symbols_[i]));
}

void LongTokens::merge_best(const Merges& merges) {
  if (merges.one_by_one()) return apply(merges, static_cast<u32>(candidate(0)));
  const u64 rank = candidate(0) >> 32;
  std::vector<std::size_t> found;
  for (const auto& block : blocks_) {
    for (const u64 key : block) {
      if (key >> 32 == rank) found.push_back(static_cast<u32>(key));
    }
    if (block.back() >> 32 != rank) break;
  }
  for (const std::size_t i : found) {
    if (ranks_[i] == static_cast<Rank>(rank)) apply(merges, i);  // else it overlapped the one before
  }
}

std::size_t LongTokens::dropped(const Dropout& dropout, Decoder& decoder) const {
  const Rates* const rates = dropout.rates();
  if (!rates) return decoder.dropped(dropout, candidates_);
  std::size_t k = 0;
  return decoder.dropped_by_rate(candidates_, [&] { return rates->fraction_of(candidate(k++) >> 32); });
}

void LongTokens::run(const Merges& merges, const Dropout& dropout, Decoder* decoder) {
  while (candidates_) {
    if (dropout.never()) {
      merge_best(merges);
      continue;
    }
    const std::size_t before = dropped(dropout, *decoder);
    if (before == candidates_) break;
    apply(merges, static_cast<u32>(candidate(before)));
  }
  std::size_t size = 0;
  for (std::size_t i = 0; i < symbols_.size(); i = next_[i]) symbols_[size++] = symbols_[i];
  symbols_.resize(size);
}

std::optional<Piece> whole(const Word& word, std::size_t part) {
  const bool last = part + 1 == part_count(word);
  const std::string_view text = part_text(word, part);
  if (word.parts && (*word.parts)[part].fixed) {
    return kFixed | (last ? 0 : kJoined) | static_cast<Piece>(part);
  }
  const auto character = only_character(text);
  if (!character) return {};
  return kForeign | (last ? 0 : kJoined) | *character;
}

bool start_symbols(const Merges& merges, const Word& word, Scratch& scratch) {
  if (word.parts || !merges.by_token() || word.text.size() > 4 * Tokens::kMost || whole(word, 0)) return false;
  merges.start(word.text, scratch.symbols);
  return scratch.symbols.size() <= Tokens::kMost;
}

bool start_word(const Merges& merges, const Word& word, Scratch& scratch) {
  if (!start_symbols(merges, word, scratch)) return false;
  scratch.tokens.start(merges, scratch.symbols);
  return true;
}

void draw(const Merges& merges, const Word& word, const Dropout& dropout, Decoder* decoder, Scratch& scratch) {
  scratch.pieces.clear();
  const std::size_t parts = part_count(word);
  for (std::size_t part = 0; part < parts; ++part) {
    const bool last = part + 1 == parts;
    if (const auto piece = whole(word, part)) {
      scratch.pieces.push_back(*piece);
      continue;
    }
    auto& symbols = scratch.symbols;
    merges.start(part_text(word, part), symbols);
    if (symbols.size() <= Tokens::kMost) {
      scratch.tokens.start(merges, symbols);
      scratch.tokens.run(merges, dropout, decoder);
      scratch.tokens.symbols(symbols);
    } else {
      LongTokens(merges, symbols).run(merges, dropout, decoder);
    }
    merges.pieces(symbols.data(), symbols.size(), last, scratch.pieces);
  }
}

namespace {

using Weighted = std::map<std::vector<Piece>, double>;

// The segmentations of one part, state by state: a state is the set of boundaries that are gone, a
// bit each. Every merge removes one, so the states fall into layers that are dealt with in turn. Calls
// done(pieces, probability) for each state, with the probability that the word stays there; the same
// pieces may come more than once.
template <class F>
void for_each_state(const Merges& merges, std::string_view text, bool last, const Dropout& dropout,
                    std::size_t most, std::size_t& states, F&& done) {
  std::vector<Symbol> start;
  merges.start(text, start);
  const std::size_t size = start.size();
  if (size > 64) throw TooManyStates("more than 64 characters");

  std::vector<Symbol> span(size * (size + 1));  // the symbol of [begin, end), once a merge has made it
  for (std::size_t i = 0; i < size; ++i) span[i * (size + 1) + i + 1] = start[i];

  std::vector<Piece> pieces;
  std::vector<std::pair<u64, double>> layer{{0, 1.0}}, next;
  std::vector<std::size_t> begins;
  std::vector<std::pair<Rank, std::size_t>> candidates;
  std::vector<Symbol> tokens;
  while (!layer.empty()) {
    states += layer.size();
    if (states > most) throw TooManyStates("more than " + std::to_string(most) + " states");
    next.clear();
    for (const auto& [gone, probability] : layer) {
      begins.assign(1, 0);
      for (std::size_t i = 1; i < size; ++i) {
        if (!(gone >> (i - 1) & 1)) begins.push_back(i);
      }
      begins.push_back(size);
      tokens.clear();
      for (std::size_t t = 0; t + 1 < begins.size(); ++t) {
        tokens.push_back(span[begins[t] * (size + 1) + begins[t + 1]]);
      }
      candidates.clear();
      for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
        const Rank rank = merges.rank(tokens[t], tokens[t + 1]);
        if (rank != kNoMerge) candidates.emplace_back(rank, t);
      }
      std::sort(candidates.begin(), candidates.end());
      double left = probability;  // that all candidates so far were dropped
      for (const auto& [rank, t] : candidates) {
        if (left == 0) break;
        const double p = dropout.p(static_cast<std::size_t>(rank));
        span[begins[t] * (size + 1) + begins[t + 2]] = merges.result(rank);
        next.emplace_back(gone | u64{1} << (begins[t + 1] - 1), left * (1 - p));
        left *= p;
      }
      if (left > 0) {
        pieces.clear();
        merges.pieces(tokens.data(), tokens.size(), last, pieces);
        done(pieces, left);
      }
    }
    std::sort(next.begin(), next.end());
    layer.clear();
    for (const auto& [gone, probability] : next) {
      if (probability == 0) continue;
      if (!layer.empty() && layer.back().first == gone) {
        layer.back().second += probability;
      } else {
        layer.emplace_back(gone, probability);
      }
    }
  }
}

}  // namespace

std::vector<Outcome> distribution(const Merges& merges, const Word& word, const Dropout& dropout, std::size_t most) {
  if (dropout.never() || dropout.always()) {  // one segmentation, however long the word
    Scratch scratch;
    Decoder decoder({}, 0, 0);
    draw(merges, word, dropout, &decoder, scratch);
    return {{scratch.pieces, 1.0}};
  }
  Weighted all{{{}, 1.0}};
  std::size_t states = 0;
  const std::size_t parts = part_count(word);
  for (std::size_t part = 0; part < parts; ++part) {
    Weighted of_part;
    if (const auto piece = whole(word, part)) {
      of_part[{*piece}] = 1.0;
    } else {
      for_each_state(merges, part_text(word, part), part + 1 == parts, dropout, most, states,
                     [&](const std::vector<Piece>& pieces, double probability) { of_part[pieces] += probability; });
    }
    if (all.size() * of_part.size() > most) {
      throw TooManyStates("more than " + std::to_string(most) + " segmentations");
    }
    Weighted product;
    for (const auto& [before, first] : all) {
      for (const auto& [after, second] : of_part) {
        auto pieces = before;
        pieces.insert(pieces.end(), after.begin(), after.end());
        product[std::move(pieces)] += first * second;
      }
    }
    all.swap(product);
  }
  std::vector<Outcome> outcomes;
  for (auto& [pieces, probability] : all) outcomes.push_back({pieces, probability});
  return outcomes;
}

double expected_length(const Merges& merges, const Word& word, const Dropout& dropout, std::size_t most) {
  double length = 0;
  if (dropout.never() || dropout.always()) {
    return static_cast<double>(distribution(merges, word, dropout, most)[0].pieces.size());
  }
  std::size_t states = 0;
  const std::size_t parts = part_count(word);
  for (std::size_t part = 0; part < parts; ++part) {
    if (whole(word, part)) {
      length += 1;
      continue;
    }
    for_each_state(merges, part_text(word, part), part + 1 == parts, dropout, most, states,
                   [&](const std::vector<Piece>& pieces, double probability) {
                     length += probability * static_cast<double>(pieces.size());
                   });
  }
  return length;
}

}  // namespace bpe
