#include "table.h"

namespace bpe {

Tables::Tables(std::size_t memory) : size_(std::max(std::min(memory / sizeof(u32), kMostWords), kStep)) {
  const auto take = [&] {
    words_.reset(static_cast<u32*>(std::aligned_alloc(64, (size_ * sizeof(u32) + 63) / 64 * 64)));
    return words_ != nullptr;
  };
  if (!take()) {  // less will do
    size_ = kStep;
    if (!take()) throw std::bad_alloc();
  }
  std::fill_n(words_.get(), kStep, 0);  // what reference 0 leads to
  words_[kLast] = kUnresolved;
}

std::vector<Tables::Shelf> Tables::shelves(std::size_t count) {
  const std::size_t each = (size_ - kStep) / count / kStep * kStep;
  std::vector<Shelf> shelves;
  for (std::size_t i = 0; i < count; ++i) shelves.push_back({kStep + i * each, kStep + (i + 1) * each});
  return shelves;
}

u32* Tables::room(Shelf& shelf, std::size_t size, u32 bits, Ref& ref) {
  size = (size + kStep - 1) / kStep * kStep;
  if (shelf.end < shelf.next + size) return nullptr;
  ref = static_cast<Ref>(shelf.next / kUnit << 5 | bits);
  u32* const at = words_.get() + shelf.next;
  shelf.next += size;
  return at;
}

Tables::Ref Tables::write(Shelf& shelf, u32 last, const u32* ids, std::size_t count, const std::vector<u32>& chart) {
  Ref ref = 0;
  u32* const kept = room(shelf, kHead + std::max(count, kCopied) + chart.size(), kNoTable, ref);
  if (!kept) return 0;
  kept[kLast] = last;
  kept[kLikely] = static_cast<Find>(kHead << 8 | count);
  kept[kBucketsAt] = 0;
  kept[kChartAt] = chart.empty() ? 0 : static_cast<u32>(kHead + count);
  std::copy(chart.begin(), chart.end(), std::copy_n(ids, count, kept + kHead));
  return ref;
}

void Tables::Plan::add(u64 begin, u64 width, u32 outcome) {
  if (width == 0) return;
  if (outcome == kUnresolved) unresolved += width;
  if (!intervals.empty() && intervals.back().outcome == outcome) return;
  intervals.push_back({begin, outcome});
}

// The same cuts as the Decoder makes, all of them instead of the one that the number falls in, as far as they are not
// finer than `finest`.
struct Tables::Cuts {
  const Dropout& dropout;
  u64 finest;

  // From a state on, in which the number is in this range: calls state.done(begin, range) where the range ends with a
  // state, and state.unresolved(begin, range) where it is cut too fine. The state is spent: it goes the way on which
  // nothing more is dropped, and the other ways go others that it makes.
  template <class State>
  void operator()(State& state, u64 begin, u64 range) const {
    for (;;) {
      const std::size_t candidates = state.candidates();
      if (candidates == 0 || dropout.always()) return state.done(begin, range);
      const Rates* const rates = dropout.rates();
      if (!rates && candidates > dropout.round()) return state.unresolved(begin, range);

      // ends[k]: where the region ends in which k candidates are dropped; it begins where the next ends. What is
      // left when an end is too near to the beginning is not looked into.
      constexpr std::size_t kMostEnds = 64;
      u64 ends[kMostEnds + 1];
      std::size_t regions = 0;
      ends[0] = range;
      u32 walk = Tokens::kNone;  // before the first candidate
      u64 missed = kAll;
      while (regions < kMostEnds && regions < candidates && ends[regions] >= finest) {
        missed = rates ? part_of_part(missed, rates->fraction_of(state.next_rank(walk))) : dropout.missed(regions);
        ends[++regions] = part_of(range, missed);
      }
      const u64 rest = ends[regions];
      if (regions == candidates && rest >= finest) {
        State(state).done(begin, rest);  // of a copy, since it is spent
      } else {
        state.unresolved(begin, rest);
      }
      for (std::size_t k = regions; k-- > 1;) {
        const u64 from = begin + ends[k + 1], width = ends[k] - ends[k + 1];
        if (width < finest) {
          state.unresolved(from, width);
          continue;
        }
        State next = state;
        next.merge(k);
        (*this)(next, from, width);
      }
      begin += ends[1];
      range -= ends[1];
      if (range < finest) return state.unresolved(begin, range);
      state.merge(0);
    }
  }
};

// The state of a word that has a chart.
struct Tables::Charted {
  const Chart& chart;
  std::vector<std::pair<u64, Chart::State>>& found;  // where it begins, and what becomes of the word
  Chart::State left;
  Chart::Candidates list;

  static constexpr Chart::State kCutOff = ~Chart::State{0};  // which is no state

  Charted(const Chart& of, std::vector<std::pair<u64, Chart::State>>& to) : chart(of), found(to), left(of.start()) {}

  std::size_t candidates() { return chart.candidates(left, list); }
  std::size_t next_rank(u32& walk) const { return chart.rank(list[++walk]); }
  void merge(std::size_t k) { left = chart.after(left, list[k]); }
  void done(u64 begin, u64 width) const { add(begin, width, left); }
  void unresolved(u64 begin, u64 width) const { add(begin, width, kCutOff); }

 private:
  void add(u64 begin, u64 width, Chart::State state) const {
    if (width) found.emplace_back(begin, state);
  }
};

Tables::Plan Tables::make_plan(const Dropout& dropout, u64 finest, const Chart& chart) {
  std::vector<std::pair<u64, Chart::State>> found;
  Charted state(chart, found);
  Cuts{dropout, finest}(state, 0, Decoder::kWhole);
  std::vector<Chart::State> outcomes;
  for (const auto& one : found) {
    if (one.second != Charted::kCutOff) outcomes.push_back(one.second);
  }
  std::sort(outcomes.begin(), outcomes.end());
  outcomes.erase(std::unique(outcomes.begin(), outcomes.end()), outcomes.end());
  Plan plan;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, left] = found[i];
    const u64 end = i + 1 < found.size() ? found[i + 1].first : Decoder::kWhole;
    const auto at = std::lower_bound(outcomes.begin(), outcomes.end(), left);
    plan.add(begin, end - begin, left == Charted::kCutOff ? kUnresolved : static_cast<u32>(at - outcomes.begin()));
  }
  plan.ids.resize(outcomes.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) chart.add_ids(outcomes[i], plan.ids[i]);
  return plan;
}

// How far Algorithm 1 has come on one path through a word of several parts, or of another kind that has no chart.
struct Tables::Parts {
  struct Common {
    const Merges& merges;
    const Word& word;
    const Dropout& dropout;
    const Cuts& cuts;
    Plan& plan;
    std::map<std::vector<Piece>, u32> outcomes;
    std::vector<Symbol> symbols;  // work space
  };
  Common& common;
  std::size_t part = 0;
  std::vector<Piece> pieces;  // of the parts before
  Tokens tokens;              // of this part

  // Takes in all that needs no decision: parts that are whole, and the symbols of the next that is not.
  void enter(u64 begin, u64 range) {
    const Merges& merges = common.merges;
    for (; part < part_count(common.word); ++part) {
      const auto piece = whole(common.word, part);
      if (!piece) {
        merges.start(part_text(common.word, part), common.symbols);
        tokens.start(merges, common.symbols);
        if (common.dropout.never()) tokens.run(merges, common.dropout, nullptr);
        return common.cuts(*this, begin, range);
      }
      pieces.push_back(*piece);
    }
    const u32 number = static_cast<u32>(common.outcomes.size());
    common.plan.add(begin, range, common.outcomes.emplace(pieces, number).first->second);
  }

  std::size_t candidates() const { return tokens.candidates(); }
  std::size_t next_rank(u32& walk) const {
    walk = tokens.next_candidate(walk);
    return Tokens::rank_of(walk);
  }
  void merge(std::size_t k) { tokens.merge(common.merges, k); }
  void done(u64 begin, u64 range) {  // with this part: on to the next
    ++part;
    tokens.symbols(common.symbols);
    common.merges.pieces(common.symbols.data(), common.symbols.size(), part == part_count(common.word), pieces);
    enter(begin, range);
  }
  void unresolved(u64 begin, u64 width) const { common.plan.add(begin, width, kUnresolved); }
};

Tables::Plan Tables::make_plan(const Merges& merges, const Word& word, const Dropout& dropout, u64 finest,
                               std::vector<std::vector<Piece>>& pieces) {
  Plan plan;
  const Cuts cuts{dropout, finest};
  Parts::Common common{merges, word, dropout, cuts, plan, {}, {}};
  Parts{common, 0, {}, {}}.enter(0, Decoder::kWhole);
  pieces.resize(common.outcomes.size());
  for (const auto& [some, outcome] : common.outcomes) pieces[outcome] = some;
  return plan;
}

Tables::Ref Tables::write(Shelf& shelf, const Plan& plan, const std::vector<u32>& chart) {
  const auto& intervals = plan.intervals;
  const auto& ids = plan.ids;
  const Interval& likely = intervals.back();
  const bool is_found = likely.outcome != kUnresolved;
  const u32 last = is_found ? static_cast<u32>(likely.begin >> 31) : kUnresolved;
  const auto buckets_of = [&](u32 bits) { return number_of_bucket(last, bits) + 1; };
  u32 bits = 0;
  if (intervals.size() > 1) {
    while (buckets_of(bits) < 2 * intervals.size() && bits < 20) ++bits;
  }
  const std::size_t buckets = buckets_of(bits);

  std::size_t all_ids = 0;
  for (const auto& some : ids) {
    if (some.size() > kMostIds) return 0;
    all_ids += some.size();
  }
  const std::size_t first_bucket = kHead + all_ids + kCopied + 1;
  const std::size_t first_interval = first_bucket + buckets;
  const std::size_t first_of_chart = first_interval + 2 * intervals.size() + 2;
  if (first_of_chart >= (std::size_t{1} << 23)) return 0;
  Ref ref = 0;
  u32* const table = room(shelf, first_of_chart + chart.size(), bits, ref);
  if (!table) return 0;
  std::copy(chart.begin(), chart.end(), table + first_of_chart);

  std::vector<Find> finds(ids.size());
  std::size_t next_id = kHead;
  const auto put = [&](u32 outcome) {
    finds[outcome] = static_cast<Find>(next_id << 8 | ids[outcome].size());
    for (const u32 id : ids[outcome]) table[next_id++] = id;
  };
  if (is_found) put(likely.outcome);
  for (u32 outcome = 0; outcome < ids.size(); ++outcome) {
    if (!is_found || outcome != likely.outcome) put(outcome);
  }
  const auto found = [&](const Interval& interval) {
    return interval.outcome == kUnresolved ? kUnresolved : finds[interval.outcome];
  };

  table[kLast] = last;
  table[kLikely] = found(likely);
  table[kBucketsAt] = static_cast<u32>(first_bucket);
  table[kChartAt] = chart.empty() ? 0 : static_cast<u32>(first_of_chart);
  table[first_bucket - 1] = static_cast<u32>(intervals.size());
  u32* at = table + first_interval;
  for (const Interval& interval : intervals) {
    *at++ = static_cast<u32>(interval.begin >> 31);
    *at++ = found(interval);
  }
  *at++ = 0xFFFFFFFF;
  *at++ = kUnresolved;
  std::size_t i = 0;
  for (u64 bucket = 0; bucket < buckets; ++bucket) {
    const u64 from = bucket << (63 - bits), to = (bucket + 1) << (63 - bits);
    while (i + 1 < intervals.size() && intervals[i + 1].begin <= from) ++i;
    const bool one = i + 1 == intervals.size() || intervals[i + 1].begin >= to;
    table[first_bucket + bucket] = one ? found(intervals[i]) : kSearch | static_cast<u32>(first_interval + 2 * i);
  }
  return ref;
}

std::vector<std::pair<std::vector<u32>, double>> Tables::probabilities(Ref ref) const {
  const u32* const table = at(ref);
  const u32* const buckets = table + table[kBucketsAt];
  const u32 count = buckets[-1];
  const u32* const intervals = buckets + number_of_bucket(table[kLast], ref & kBits) + 1;
  std::map<std::vector<u32>, double> sums;
  for (u32 i = 0; i < count; ++i) {
    const Find what = intervals[2 * i + 1];
    if (what == kUnresolved) continue;
    double width = std::ldexp(1.0, 32);
    if (count > 1) {
      const double end = i + 1 < count ? intervals[2 * i + 2] : width;
      width = std::max(0.0, end - intervals[2 * i] - 1);
    }
    sums[{table + ids_begin(what), table + ids_begin(what) + ids_count(what)}] += std::ldexp(width, -32);
  }
  return {sums.begin(), sums.end()};
}

}  // namespace bpe
