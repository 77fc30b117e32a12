#include "draw.h"

#include <map>

namespace bpe {

void Tokens::apply(std::size_t i) {
  symbols_[i] = merges_.result(ranks_[i]);
  candidates_ -= ranks_[i + 1] != kNoMerge;
  symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  ranks_.erase(ranks_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  if (i > 0) set(i - 1);
  if (i + 1 < symbols_.size()) {
    set(i);
  } else {
    candidates_ -= 1;
    ranks_[i] = kNoMerge;
  }
}

void Tokens::merge(std::size_t before, std::vector<std::pair<std::size_t, Rank>>& set_aside) {
  if (before == 0) return apply(best());
  set_aside.clear();
  for (; before > 0; --before) {
    const std::size_t i = best();
    set_aside.emplace_back(i, ranks_[i]);
    ranks_[i] = kNoMerge;
  }
  const std::size_t chosen = best();
  for (const auto& [i, rank] : set_aside) ranks_[i] = rank;
  apply(chosen);
}

void Tokens::merge_all_of_best() {
  constexpr Rank kUnknown = -1;
  const Rank rank = ranks_[best()];
  const Symbol merged = merges_.result(rank);
  std::size_t size = 0;
  for (std::size_t i = 0; i < symbols_.size(); ++size) {
    if (ranks_[i] == rank) {
      if (size > 0) ranks_[size - 1] = kUnknown;
      symbols_[size] = merged;
      ranks_[size] = kUnknown;
      i += 2;
    } else {
      symbols_[size] = symbols_[i];
      ranks_[size] = ranks_[i];
      i += 1;
    }
  }
  symbols_.resize(size);
  ranks_.resize(size);
  ranks_.back() = kNoMerge;
  candidates_ = 0;
  for (std::size_t i = 0; i + 1 < size; ++i) {
    if (ranks_[i] == kUnknown) ranks_[i] = merges_.rank(symbols_[i], symbols_[i + 1]);
    candidates_ += ranks_[i] != kNoMerge;
  }
}

namespace {

// Candidates of a long word in the order of their priority: keys in sorted blocks, so that to add, to
// remove and to find the k-th are all cheap, however long the word.
class SortedKeys {
 public:
  explicit SortedKeys(std::vector<u64> keys) : size_(keys.size()) {
    std::sort(keys.begin(), keys.end());
    for (std::size_t i = 0; i < keys.size(); i += kFill) {
      blocks_.emplace_back(keys.begin() + static_cast<std::ptrdiff_t>(i),
                           keys.begin() + static_cast<std::ptrdiff_t>(std::min(i + kFill, keys.size())));
    }
    if (blocks_.empty()) blocks_.emplace_back();
  }

  std::size_t size() const { return size_; }

  u64 at(std::size_t k) const {
    std::size_t block = 0;
    while (k >= blocks_[block].size()) k -= blocks_[block++].size();
    return blocks_[block][k];
  }

  void insert(u64 key) {
    const std::size_t i = find(key);
    auto& block = blocks_[i];
    block.insert(std::lower_bound(block.begin(), block.end(), key), key);
    ++size_;
    if (block.size() < 2 * kFill) return;
    std::vector<u64> upper(block.begin() + kFill, block.end());
    block.resize(kFill);
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(upper));
  }

  void erase(u64 key) {
    const std::size_t i = find(key);
    auto& block = blocks_[i];
    block.erase(std::lower_bound(block.begin(), block.end(), key));
    --size_;
    if (block.empty() && blocks_.size() > 1) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
  }

 private:
  static constexpr std::size_t kFill = 256;

  // The last block that begins at or before `key`, or the first.
  std::size_t find(u64 key) const {
    const auto after = std::upper_bound(blocks_.begin() + 1, blocks_.end(), key,
                                        [](u64 k, const std::vector<u64>& block) { return k < block.front(); });
    return static_cast<std::size_t>(after - blocks_.begin()) - 1;
  }

  std::vector<std::vector<u64>> blocks_;  // none is empty, but the only one
  std::size_t size_;
};

// The same as Tokens, for long words: a linked list and sorted candidates.
class LongTokens {
 public:
  LongTokens(const Merges& merges, std::vector<Symbol>& symbols)
      : merges_(merges), symbols_(symbols), ranks_(symbols.size(), kNoMerge), keys_(first_keys()) {
    next_.resize(symbols.size());
    previous_.resize(symbols.size());
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      next_[i] = i + 1;
      previous_[i] = i - 1;
    }
  }

  std::size_t candidates() const { return keys_.size(); }

  void merge(std::size_t before) { apply(static_cast<u32>(keys_.at(before))); }

  void merge_all_of_best() {
    const Rank rank = static_cast<Rank>(keys_.at(0) >> 32);
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < keys_.size() && static_cast<Rank>(keys_.at(k) >> 32) == rank; ++k) {
      found.push_back(static_cast<u32>(keys_.at(k)));
    }
    for (const std::size_t i : found) {
      if (ranks_[i] == rank) apply(i);  // else it overlapped the one before
    }
  }

  // Leaves the tokens, in their order, in the vector that they came in.
  void finish() {
    std::size_t size = 0;
    for (std::size_t i = 0; i < symbols_.size(); i = next_[i]) symbols_[size++] = symbols_[i];
    symbols_.resize(size);
  }

 private:
  static u64 key(Rank rank, std::size_t i) { return static_cast<u64>(rank) << 32 | i; }

  std::vector<u64> first_keys() {
    std::vector<u64> keys;
    for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) {
      ranks_[i] = merges_.rank(symbols_[i], symbols_[i + 1]);
      if (ranks_[i] != kNoMerge) keys.push_back(key(ranks_[i], i));
    }
    return keys;
  }

  void apply(std::size_t i) {
    const std::size_t right = next_[i];
    symbols_[i] = merges_.result(ranks_[i]);
    set(right, kNoMerge);
    next_[i] = next_[right];
    if (next_[i] < symbols_.size()) previous_[next_[i]] = i;
    set(i, next_[i] < symbols_.size() ? merges_.rank(symbols_[i], symbols_[next_[i]]) : kNoMerge);
    if (i > 0) set(previous_[i], merges_.rank(symbols_[previous_[i]], symbols_[i]));
  }

  void set(std::size_t i, Rank rank) {
    if (ranks_[i] != kNoMerge) keys_.erase(key(ranks_[i], i));
    ranks_[i] = rank;
    if (rank != kNoMerge) keys_.insert(key(rank, i));
  }

  const Merges& merges_;
  std::vector<Symbol>& symbols_;
  std::vector<Rank> ranks_;
  SortedKeys keys_;
  std::vector<std::size_t> next_, previous_;
};

// From so many symbols on, a word counts as long. Only the time depends on it.
constexpr std::size_t kLong = 192;

}  // namespace

std::optional<Piece> whole(const Word& word, std::size_t part) {
  const bool last = part + 1 == part_count(word);
  const std::string_view text = part_text(word, part);
  if (word.parts && (*word.parts)[part].fixed) {
    return kFixed | (last ? 0 : kJoined) | static_cast<Piece>(part);
  }
  if (character_size(text.data(), text.data() + text.size()) != text.size()) return {};
  const char* at = text.data();
  return kForeign | (last ? 0 : kJoined) | next_character(at);
}

void draw(const Merges& merges, const Word& word, const Dropout& dropout, Decoder* decoder, Scratch& scratch) {
  scratch.pieces.clear();
  const std::size_t parts = part_count(word);
  for (std::size_t part = 0; part < parts; ++part) {
    if (const auto piece = whole(word, part)) {
      scratch.pieces.push_back(*piece);
      continue;
    }
    merges.start(part_text(word, part), scratch.symbols);
    if (scratch.symbols.size() < kLong) {
      Tokens tokens(merges, scratch.symbols, scratch.ranks);
      while (const std::size_t candidates = tokens.candidates()) {
        if (dropout.never()) {
          tokens.merge_all_of_best();
          continue;
        }
        const std::size_t dropped = decoder->dropped(dropout, candidates);
        if (dropped == candidates) break;
        tokens.merge(dropped, scratch.set_aside);
      }
    } else {
      LongTokens tokens(merges, scratch.symbols);
      while (const std::size_t candidates = tokens.candidates()) {
        if (dropout.never()) {
          tokens.merge_all_of_best();
          continue;
        }
        const std::size_t dropped = decoder->dropped(dropout, candidates);
        if (dropped == candidates) break;
        tokens.merge(dropped);
      }
      tokens.finish();
    }
    merges.pieces(scratch.symbols.data(), scratch.symbols.size(), part + 1 == parts, scratch.pieces);
  }
}

namespace {

using Weighted = std::map<std::vector<Piece>, double>;

// The segmentations of one part, state by state: a state is the set of boundaries that are gone, a
// bit each. Every merge removes one, so the states fall into layers that are dealt with in turn.
Weighted part_distribution(const Merges& merges, std::string_view text, bool last, double p, std::size_t most,
                           std::size_t& states) {
  std::vector<Symbol> start;
  merges.start(text, start);
  const std::size_t size = start.size();
  if (size > 64) throw TooManyStates("more than 64 characters");

  std::vector<Symbol> span(size * (size + 1));  // the symbol of [begin, end), once a merge has made it
  for (std::size_t i = 0; i < size; ++i) span[i * (size + 1) + i + 1] = start[i];

  Weighted result;
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
        std::vector<Piece> pieces;
        merges.pieces(tokens.data(), tokens.size(), last, pieces);
        result[std::move(pieces)] += left;
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
  return result;
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
      of_part = part_distribution(merges, part_text(word, part), part + 1 == parts, p, most, states);
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

}  // namespace bpe
