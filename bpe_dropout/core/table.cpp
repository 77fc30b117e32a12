#include "table.h"

namespace bpe {

// How far Algorithm 1 has come on one path through a word.
struct Tables::State {
  std::size_t part = 0;
  std::vector<Piece> pieces;  // of the parts before
  Tokens tokens;              // of this part
};

void Tables::emit(Plan& plan, u64 begin, u32 outcome) {
  if (!plan.intervals.empty() && plan.intervals.back().outcome == outcome) return;
  plan.intervals.push_back({begin, outcome});
}

// Takes in all that needs no decision: parts that are whole, and the symbols of the next that is not.
void Tables::enter_part(Plan& plan, State& state, u64 begin, u64 range) {
  const std::size_t parts = part_count(plan.word);
  for (; state.part < parts; ++state.part) {
    const auto piece = whole(plan.word, state.part);
    if (!piece) {
      std::vector<Symbol> symbols;
      plan.merges.start(part_text(plan.word, state.part), symbols);
      state.tokens.start(plan.merges, symbols);
      return expand(plan, state, begin, range);
    }
    state.pieces.push_back(*piece);
  }
  const u32 number = static_cast<u32>(plan.outcomes.size());
  emit(plan, begin, plan.outcomes.emplace(state.pieces, number).first->second);
}

// The same cuts as Decoder::dropped makes, all of them instead of the one that the number falls in.
void Tables::expand(Plan& plan, const State& state, u64 begin, u64 range) {
  const std::size_t candidates = state.tokens.candidates();
  const auto finish = [&](u64 from, u64 width) {
    State next;
    next.part = state.part + 1;
    next.pieces = state.pieces;
    plan.merges.pieces(state.tokens.symbols(), state.tokens.size(), next.part == part_count(plan.word), next.pieces);
    enter_part(plan, next, from, width);
  };
  if (candidates == 0 || plan.dropout.always()) return finish(begin, range);
  if (plan.dropout.never()) {
    State next = state;
    next.tokens.merge_all_of_best(plan.merges);
    return expand(plan, next, begin, range);
  }
  if (candidates > plan.dropout.round()) return emit(plan, begin, kUnresolved);

  // ends[k]: where the region ends in which k candidates are dropped; it begins where the next ends.
  std::vector<u64> ends{range};
  while (ends.size() <= candidates) ends.push_back(mulhi(range, plan.dropout.missed(ends.size() - 1)));
  ends.push_back(0);
  for (std::size_t k = candidates + 1; k-- > 0;) {
    const u64 from = ends[k + 1], width = ends[k] - from;
    if (width == 0) continue;
    if (width < plan.finest) {
      emit(plan, begin + from, kUnresolved);
    } else if (k == candidates) {
      finish(begin + from, width);
    } else {
      State next = state;
      next.tokens.merge(plan.merges, k);
      expand(plan, next, begin + from, width);
    }
  }
}

Tables::Plan Tables::make_plan(const Merges& merges, const Word& word, const Dropout& dropout, double finest) {
  const double width = std::max(std::ldexp(finest, 63), static_cast<double>(Decoder::kLeast));
  Plan plan{merges, word, dropout, static_cast<u64>(width), {}, {}};
  State state;
  enter_part(plan, state, 0, Decoder::kWhole);
  return plan;
}

Tables::Ref Tables::write(const Plan& plan, const std::vector<std::vector<u32>>& ids) {
  const auto& intervals = plan.intervals;
  u32 bits = 0;
  if (intervals.size() > 1) {
    while ((std::size_t{1} << bits) < 2 * intervals.size() && bits < 16) ++bits;
  }
  const std::size_t buckets = std::size_t{1} << bits;

  std::size_t all_ids = 0;
  for (const auto& some : ids) {
    if (some.size() > kMostIds) return 0;
    all_ids += some.size();
  }
  const std::size_t first_interval = 1 + buckets;
  const std::size_t first_id = first_interval + (intervals.size() > 1 ? 2 * intervals.size() + 2 : 0);
  // What copies ids may read four at once, past the end of the last.
  const std::size_t size = (first_id + all_ids + 4 + 3) / 4 * 4;
  const std::size_t begin = words_.empty() ? 4 : words_.size();  // so that no reference is 0
  if (first_id + all_ids >= (std::size_t{1} << 23) || begin / 4 >= kMostTables) return 0;
  words_.resize(begin + size);
  u32* const table = words_.data() + begin;

  std::vector<Find> finds;
  std::size_t next_id = first_id;
  for (const auto& some : ids) {
    finds.push_back(static_cast<Find>(next_id << 8 | some.size()));
    for (const u32 id : some) table[next_id++] = id;
  }
  const auto found = [&](const Interval& interval) {
    return interval.outcome == kUnresolved ? kUnresolved : finds[interval.outcome];
  };

  table[0] = static_cast<u32>(intervals.size());
  if (intervals.size() == 1) {
    table[1] = found(intervals[0]);
  } else {
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
      table[1 + bucket] = one ? found(intervals[i]) : kSearch | static_cast<u32>(first_interval + 2 * i);
    }
  }
  return static_cast<Ref>(begin / 4 << 5 | bits);
}

std::vector<std::pair<std::vector<u32>, double>> Tables::probabilities(Ref ref) const {
  const u32* const table = at(ref);
  const u32 count = table[0];
  const u32* const intervals = table + 1 + (std::size_t{1} << (ref & 31));
  std::map<std::vector<u32>, double> sums;
  for (u32 i = 0; i < count; ++i) {
    const Find what = count == 1 ? table[1] : intervals[2 * i + 1];
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
