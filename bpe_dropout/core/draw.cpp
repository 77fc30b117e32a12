#include "draw.h"

#include <cstring>
#include <map>

namespace bpe {

namespace {

// Four numbers at once; the compiler has instructions for it everywhere.
typedef std::int32_t Four __attribute__((vector_size(16)));

inline Four load(const void* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
inline void store(void* to, Four four) { std::memcpy(to, &four, sizeof four); }
inline Four choose(Four which, Four yes, Four no) { return (which & yes) | (~which & no); }

}  // namespace

void Tokens::start(const Merges& merges, const std::vector<Symbol>& symbols) {
  size_ = symbols.size();
  candidates_ = 0;
  std::copy(symbols.begin(), symbols.end(), symbols_);
  for (std::size_t i = 0; i + 1 < size_; ++i) {
    keys_[i] = kNone;
    set(merges, i);
  }
  std::fill_n(keys_ + (size_ - 1), kPadding + 1, 0x7FFFFFFF);
}

// The least key that is greater than `key`.
inline std::int32_t Tokens::least_above(std::int32_t key) const {
  const Four above = {key, key, key, key};
  Four least = {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF};
  for (std::size_t i = 0; i < size_; i += 4) {
    const Four keys = load(keys_ + i);
    least = choose((keys > above) & (keys < least), keys, least);
  }
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

void Tokens::merge(const Merges& merges, std::size_t before) {
  std::int32_t key = least_above(-1);
  for (; before > 0; --before) key = least_above(key);
  apply(merges, static_cast<std::size_t>(key & kPositionMask));
}

void Tokens::merge_all_of_best(const Merges& merges) {
  const std::int32_t rank = least_above(-1) >> kPositionBits;
  for (std::size_t i = 0; i + 1 < size_; ++i) {
    if (keys_[i] >> kPositionBits == rank) apply(merges, i);
  }
}

inline void Tokens::apply(const Merges& merges, std::size_t i) {
  symbols_[i] = merges.result(keys_[i] >> kPositionBits);
  candidates_ -= keys_[i + 1] < kNone;
  --size_;
  const Four one = {1, 1, 1, 1};
  for (std::size_t j = i + 1; j < size_; j += 4) {
    store(symbols_ + j, load(symbols_ + j + 1));
    store(keys_ + j, load(keys_ + j + 1) - one);  // each is one position further to the left
  }
  if (i + 1 < size_) {
    set(merges, i);
  } else {
    candidates_ -= 1;
    keys_[i] = 0x7FFFFFFF;
  }
  if (i > 0) set(merges, i - 1);
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

void LongTokens::merge_all_of_best(const Merges& merges) {
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

void LongTokens::finish() {
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

namespace {

template <class T>
void run(const Merges& merges, const Dropout& dropout, Decoder* decoder, T& tokens) {
  while (const std::size_t candidates = tokens.candidates()) {
    if (dropout.never()) {
      tokens.merge_all_of_best(merges);
      continue;
    }
    const std::size_t dropped = decoder->dropped(dropout, candidates);
    if (dropped == candidates) break;
    tokens.merge(merges, dropped);
  }
}

}  // namespace

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
      run(merges, dropout, decoder, scratch.tokens);
      merges.pieces(scratch.tokens.symbols(), scratch.tokens.size(), last, scratch.pieces);
    } else {
      LongTokens tokens(merges, symbols);
      run(merges, dropout, decoder, tokens);
      tokens.finish();
      merges.pieces(symbols.data(), symbols.size(), last, scratch.pieces);
    }
  }
}

namespace {

using Weighted = std::map<std::vector<Piece>, double>;

// The segmentations of one part, state by state: a state is the set of boundaries that are gone, a
// bit each. Every merge removes one, so the states fall into layers that are dealt with in turn. Calls
// done(pieces, probability) for each state, with the probability that the word stays there; the same
// pieces may come more than once.
template <class F>
void for_each_state(const Merges& merges, std::string_view text, bool last, double p, std::size_t most,
                    std::size_t& states, F&& done) {
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

std::vector<Outcome> distribution(const Merges& merges, const Word& word, double p, std::size_t most) {
  if (p <= 0 || p >= 1) {  // one segmentation, however long the word
    Scratch scratch;
    Decoder decoder({}, 0, 0);
    draw(merges, word, Dropout(p), &decoder, scratch);
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
      for_each_state(merges, part_text(word, part), part + 1 == parts, p, most, states,
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

double expected_length(const Merges& merges, const Word& word, double p, std::size_t most) {
  double length = 0;
  if (p <= 0 || p >= 1) return static_cast<double>(distribution(merges, word, p, most)[0].pieces.size());
  std::size_t states = 0;
  const std::size_t parts = part_count(word);
  for (std::size_t part = 0; part < parts; ++part) {
    if (whole(word, part)) {
      length += 1;
      continue;
    }
    for_each_state(merges, part_text(word, part), part + 1 == parts, p, most, states,
                   [&](const std::vector<Piece>& pieces, double probability) {
                     length += probability * static_cast<double>(pieces.size());
                   });
  }
  return length;
}

}  // namespace bpe
