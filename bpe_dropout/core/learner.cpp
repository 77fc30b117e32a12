#include "learner.h"

#include <atomic>
#include <numeric>

#include "threads.h"

namespace bpe {

namespace {

// The symbols that words begin with, by character.
class Characters {
 public:
  explicit Characters(Spellings& spellings) : spellings_(spellings) {}

  void append(std::string_view word, std::vector<Symbol>& out) {
    const char* at = word.data();
    const char* const end = at + word.size();
    while (at < end) {
      const char* const begin = at;
      const u32 c = next_character(at);
      auto& symbols = at == end ? final_ : within_;
      if (symbols.size() <= c) symbols.resize(c + 1, kUnknown);
      if (symbols[c] == kUnknown) {
        const std::string text(begin, at);
        symbols[c] = spellings_.add(at == end ? text + "</w>" : text);
      }
      out.push_back(symbols[c]);
    }
  }

 private:
  static constexpr Symbol kUnknown = 0xFFFFFFFF;
  Spellings& spellings_;
  std::vector<Symbol> within_, final_;
};

}  // namespace

Learner::Learner(std::string_view words, const i64* counts, i64 min_frequency, std::size_t threads, Report report)
    : min_frequency_(min_frequency), report_(std::move(report)) {
  read(words, counts);
  count_pairs(threads);
  pairs_.start();
}

void Learner::report() {
  work_ = 0;
  if (report_) report_(merges_.size());
}

void Learner::read(std::string_view words, const i64* counts) {
  std::vector<std::string_view> texts;
  for_each_word(words, Split::kSpaces, [&](std::string_view word) { texts.push_back(word); });
  std::vector<u32> order(texts.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return counts[a] > counts[b]; });

  Characters characters(spellings_);
  text_.reserve(count_characters(words) + 2);
  text_.push_back(kEdge);
  std::vector<Symbol> symbols;
  for (const u32 word : order) {
    tick(texts[word].size());
    symbols.clear();
    characters.append(texts[word], symbols);
    if (symbols.size() < 2) continue;
    if (LiteralWords::are_needed(texts[word])) {
      literal_.add(symbols, counts[word]);
      continue;
    }
    if (weights_.empty() || weights_.back().count != counts[word]) {
      weights_.push_back({static_cast<u32>(text_.size()), counts[word]});
    }
    text_.insert(text_.end(), symbols.begin(), symbols.end());
    text_.push_back(kEdge);
  }
  characters_ = spellings_.size();
  // Where counts only fall, pairs that are too rare now will never be merged, and need not be remembered.
  keeps_rare_ = !literal_.empty() || min_frequency_ < 1 || (!order.empty() && counts[order.back()] < 0);
}

void Learner::count_pairs(std::size_t threads) {
  // Each thread numbers the pairs of its share by itself.
  struct Share {
    std::size_t begin, end;
    Table64 numbers;
    struct Seen {
      Symbol left, right;
      i64 count;
      u32 places;
      u32* next;
    };
    std::vector<Seen> seen;
  };
  constexpr std::size_t kWorthAThread = 1 << 18;
  threads = std::max<std::size_t>(1, std::min(threads, text_.size() / kWorthAThread));
  std::vector<Share> shares(threads);
  for (std::size_t i = 0, begin = 0; i < threads; ++i) {
    std::size_t end = text_.size() / threads * (i + 1);
    if (i + 1 == threads) end = text_.size();
    while (end < text_.size() && text_[end - 1] != kEdge) ++end;
    shares[i].begin = begin;
    shares[i].end = end;
    begin = end;
  }
  std::vector<u32> number_at(text_.size());
  std::atomic<bool> stopped{false};
  // Calls visit(place) for all pairs of a share, and lets an error in the report stop all threads.
  const auto visit = [&](std::size_t i, auto&& one) {
    for (std::size_t at = shares[i].begin; at + 1 < shares[i].end; ++at) {
      if (text_[at] != kEdge && text_[at + 1] != kEdge) one(at);
      if (at % kWorkBetweenReports != 0) continue;
      if (stopped) return;
      if (i != 0) continue;
      try {
        report();
      } catch (...) {
        stopped = true;
        throw;
      }
    }
  };
  const auto pair_at = [&](std::size_t at) { return static_cast<u64>(text_[at]) << 32 | text_[at + 1]; };
  constexpr std::size_t kAhead = 12;
  in_threads(threads, [&](std::size_t i) {
    Share& share = shares[i];
    std::size_t next_weight = static_cast<std::size_t>(
        std::upper_bound(weights_.begin(), weights_.end(), share.begin,
                         [](std::size_t at, const Weight& weight) { return at < weight.begin; }) -
        weights_.begin());
    visit(i, [&](std::size_t at) {
      while (next_weight < weights_.size() && weights_[next_weight].begin <= at) ++next_weight;
      if (at + kAhead + 1 < share.end) share.numbers.prefetch(pair_at(at + kAhead));
      u32& number = share.numbers[pair_at(at)];
      if (number == Table64::kNone) {
        number = static_cast<u32>(share.seen.size());
        share.seen.push_back({text_[at], text_[at + 1], 0, 0, nullptr});
      }
      auto& seen = share.seen[number];
      seen.count += weights_[next_weight - 1].count;
      ++seen.places;
      number_at[at] = number;
    });
  });

  std::vector<u32> places;
  for (Share& share : shares) {
    share.numbers = Table64(2);
    for (auto& seen : share.seen) {
      const Pairs::Number number = pairs_.add(seen.left, seen.right);
      pairs_[number].count += seen.count;
      if (places.size() <= number) places.resize(number + 1);
      places[number] += seen.places;
    }
  }
  for (Pairs::Number number = 0; number < places.size(); ++number) {
    if (keeps_rare_ || pairs_[number].count >= min_frequency_) pairs_[number].places.resize(places[number]);
  }
  std::fill(places.begin(), places.end(), 0);
  for (Share& share : shares) {
    for (auto& seen : share.seen) {
      const Pairs::Number number = pairs_.add(seen.left, seen.right);
      if (pairs_[number].places.size()) seen.next = pairs_[number].places.begin() + places[number];
      places[number] += seen.places;
    }
  }
  in_threads(threads, [&](std::size_t i) {
    visit(i, [&](std::size_t at) {
      if (at + kAhead < shares[i].end) __builtin_prefetch(&shares[i].seen[number_at[at + kAhead]]);
      u32*& next = shares[i].seen[number_at[at]].next;
      if (next) *next++ = static_cast<u32>(at);
    });
  });
}

const std::vector<std::pair<std::string, std::string>>& Learner::learn(u64 merges) {
  while (merges_.size() < merges) {
    const Pairs::Number best = pairs_.best(merges_.size());
    if (best == Pairs::kNone || pairs_[best].count < min_frequency_) break;
    merge(best);
    tick(256);
  }
  return merges_;
}

void Learner::merge(Pairs::Number number) {
  const Symbol left = pairs_[number].left, right = pairs_[number].right;
  std::string first(spellings_[left]), second(spellings_[right]);
  const Symbol merged = spellings_.add(first + second);
  if (pairs_[number].places.size()) merge_places(number, merged);
  literal_.merge(number, merged, [this](std::size_t work) { tick(work); });
  pairs_.merged(number, merges_.size());
  merges_.emplace_back(std::move(first), std::move(second));
}

void Learner::merge_places(Pairs::Number number, Symbol merged) {
  constexpr std::size_t kAhead = 12;
  const Symbol left = pairs_[number].left, right = pairs_[number].right;
  const u32 left_length = spellings_.length(left), length = spellings_.length(merged);
  left_.neighbours.resize(spellings_.size());
  right_.neighbours.resize(spellings_.size());
  Places places = std::move(pairs_[number].places);
  std::size_t weight = 0;
  for (const u32 *place = places.begin(), *end = places.end(); place < end; ++place) {
    if (place + kAhead < end) __builtin_prefetch(&text_[place[kAhead]], 1);
    const u32 at = *place, middle = at + left_length;
    if (text_[at] != left || text_[middle] != right) continue;
    if (weight + 1 < weights_.size() && weights_[weight + 1].begin <= at) {
      const auto next = std::upper_bound(weights_.begin() + static_cast<std::ptrdiff_t>(weight) + 1, weights_.end(), at,
                                         [](u32 a, const Weight& w) { return a < w.begin; });
      weight = static_cast<std::size_t>(next - weights_.begin()) - 1;
    }
    const i64 count = weights_[weight].count;
    const Symbol before = text_[at - 1], after = text_[at + length];
    text_[middle - 1] = text_[middle] = kWithin;
    text_[at] = text_[at + length - 1] = merged;
    if (before == merged) {  // just now: what is on its right is no longer `left`, but this
      Neighbour& previous = right_.neighbours[left];
      previous.gained -= count;
      --previous.places;
      right_.places.back().first = merged;
      right_.see(merged, count);
    } else if (before != kEdge) {
      left_.see(before, count);
      left_.places.emplace_back(before, at - spellings_.length(before));
    }
    if (after != kEdge) {
      right_.see(after, count);
      right_.places.emplace_back(after, at);
    }
  }
  for (const Symbol before : left_.seen) {
    change(before, left, -left_.neighbours[before].lost);
    gain(before, merged, left_.neighbours[before]);
  }
  for (const Symbol after : right_.seen) {
    if (after != merged) change(right, after, -right_.neighbours[after].lost);
    gain(merged, after, right_.neighbours[after]);
  }
  left_.write();
  right_.write();
  tick(places.size());
}

void Learner::change(Symbol left, Symbol right, i64 by) {
  const Pairs::Number number = pairs_.find(left, right);
  if (number != Pairs::kNone) pairs_.change(number, by);
}

void Learner::gain(Symbol left, Symbol right, Neighbour& neighbour) {
  if (neighbour.places == 0 || (!keeps_rare_ && neighbour.gained < min_frequency_)) return;
  const Pairs::Number number = pairs_.add(left, right);
  pairs_.change(number, neighbour.gained);
  Places& places = pairs_[number].places;
  places.resize(neighbour.places);
  neighbour.next = places.begin();
}

void Learner::Side::write() {
  for (const auto& [symbol, place] : places) {
    if (u32*& next = neighbours[symbol].next) *next++ = place;
  }
  for (const Symbol symbol : seen) neighbours[symbol] = {};
  places.clear();
  seen.clear();
}

}  // namespace bpe
