#include "table.h"

namespace bpe {

// How far Algorithm 1 has come on one path through a word.
struct Tables::State {
  std::size_t part = 0;
  std::vector<Piece> pieces;  // of the parts before
  Tokens tokens;              // of this part
};

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

u32 Tables::start_of(const Merges& merges, const Word& word, const Dropout& dropout, Scratch& scratch) {
  scratch.start.clear();
  if (!start_word(merges, word, scratch)) return kUnresolved;
  const u64 range = scratch.tokens.save(merges, dropout, scratch.start);
  scratch.tokens.symbols(scratch.symbols);
  // A number is known to 32 bits here, and to 63 in draw(): a tie is left to it.
  return range ? static_cast<u32>((Decoder::kWhole - range) >> 31) : kUnresolved;
}

Tables::Ref Tables::write(Shelf& shelf, u32 last, const std::vector<u32>& ids, const std::vector<u32>& start) {
  Ref ref = 0;
  u32* const kept = room(shelf, kHead + ids.size() + start.size(), kStart, ref);
  if (!kept) return 0;
  kept[kLast] = last;
  kept[kLikely] = static_cast<Find>(kHead << 8 | ids.size());
  kept[kBucketsAt] = 0;
  kept[kStartAt] = static_cast<u32>(kHead + ids.size());
  std::copy(start.begin(), start.end(), std::copy(ids.begin(), ids.end(), kept + kHead));
  return ref;
}

void Tables::emit(Plan& plan, u64 begin, u64 width, u32 outcome) {
  if (width == 0) return;
  if (outcome == kUnresolved) plan.unresolved += width;
  if (!plan.intervals.empty() && plan.intervals.back().outcome == outcome) return;
  plan.intervals.push_back({begin, outcome});
}

// Takes in all that needs no decision: parts that are whole, and the symbols of the next that is not.
void Tables::enter_part(Plan& plan, State& state, u64 begin, u64 range) {
  const std::size_t parts = part_count(plan.word);
  for (; state.part < parts; ++state.part) {
    const auto piece = whole(plan.word, state.part);
    if (!piece) {
      plan.merges.start(part_text(plan.word, state.part), plan.symbols);
      state.tokens.start(plan.merges, plan.symbols);
      return expand(plan, state, begin, range);
    }
    state.pieces.push_back(*piece);
  }
  const u32 number = static_cast<u32>(plan.outcomes.size());
  emit(plan, begin, range, plan.outcomes.emplace(state.pieces, number).first->second);
}

// The part is segmented: on to the next.
void Tables::finish_part(Plan& plan, State& state, u64 begin, u64 range) {
  ++state.part;
  state.tokens.symbols(plan.symbols);
  plan.merges.pieces(plan.symbols.data(), plan.symbols.size(), state.part == part_count(plan.word), state.pieces);
  enter_part(plan, state, begin, range);
}

// The same cuts as the Decoder makes, all of them instead of the one that the number falls in. The state is
// spent: it goes the way on which nothing more is dropped, and the other ways go copies of it.
void Tables::expand(Plan& plan, State& state, u64 begin, u64 range) {
  if (plan.dropout.never()) {
    while (state.tokens.candidates()) state.tokens.merge_best(plan.merges);
  }
  for (;;) {
    const std::size_t candidates = state.tokens.candidates();
    if (candidates == 0 || plan.dropout.always()) return finish_part(plan, state, begin, range);
    const Rates* const rates = plan.dropout.rates();
    if (!rates && candidates > plan.dropout.round()) return emit(plan, begin, range, kUnresolved);

    // ends[k]: where the region ends in which k candidates are dropped; it begins where the next ends. What is
    // left when an end is too near to the beginning is not looked into.
    constexpr std::size_t kMostEnds = 64;
    u64 ends[kMostEnds + 1];
    std::size_t regions = 0;
    ends[0] = range;
    u32 key = Tokens::kNone;
    u64 missed = kAll;
    while (regions < kMostEnds && regions < candidates && ends[regions] >= plan.finest) {
      if (rates) {
        key = state.tokens.next_candidate(key);
        missed = part_of_part(missed, rates->fraction_of(Tokens::rank_of(key)));
      } else {
        missed = plan.dropout.missed(regions);
      }
      ends[++regions] = part_of(range, missed);
    }
    const u64 rest = ends[regions];
    if (regions == candidates && rest >= plan.finest) {
      State next = state;
      finish_part(plan, next, begin, rest);
    } else if (rest > 0) {
      emit(plan, begin, rest, kUnresolved);
    }
    for (std::size_t k = regions; k-- > 1;) {
      const u64 from = begin + ends[k + 1], width = ends[k] - ends[k + 1];
      if (width == 0) continue;
      if (width < plan.finest) {
        emit(plan, from, width, kUnresolved);
        continue;
      }
      State next = state;
      next.tokens.merge(plan.merges, k);
      expand(plan, next, from, width);
    }
    begin += ends[1];
    range -= ends[1];
    if (range < plan.finest) return emit(plan, begin, range, kUnresolved);
    state.tokens.merge(plan.merges, 0);
  }
}

Tables::Plan Tables::make_plan(const Merges& merges, const Word& word, const Dropout& dropout, double finest) {
  const double width = std::max(std::ldexp(finest, 63), static_cast<double>(Decoder::kLeast));
  Plan plan{merges, word, dropout, static_cast<u64>(width), {}, {}, 0, {}};
  State state;
  enter_part(plan, state, 0, Decoder::kWhole);
  return plan;
}

Tables::Ref Tables::write(Shelf& shelf, const Plan& plan, const std::vector<std::vector<u32>>& ids, Scratch& scratch) {
  const auto& intervals = plan.intervals;
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
  const std::size_t first_of_start = first_interval + 2 * intervals.size() + 2;
  if (first_of_start >= (std::size_t{1} << 23)) return 0;
  scratch.start.clear();
  if (plan.unresolved) start_of(plan.merges, plan.word, plan.dropout, scratch);
  Ref ref = 0;
  u32* const table = room(shelf, first_of_start + scratch.start.size(), bits, ref);
  if (!table) return 0;
  std::copy(scratch.start.begin(), scratch.start.end(), table + first_of_start);

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
  table[kStartAt] = scratch.start.empty() ? 0 : static_cast<u32>(first_of_start);
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
