#include "chart.h"

#include <algorithm>
#include <cstring>

#include "processor.h"

namespace bpe {

// What is kept of a chart, in 32-bit words: the number of characters; of merges; of merges on its way; whether there
// are lists of ids; the ids of the characters, filled up to kWords; the slots of the merges on the way; merges, in
// chunks; for each merge the id of what it makes, and its Place; where each merge has a rate of its own, its rank;
// lists. What is not one id is kSeveral and where its list is: the number of ids, and they.
//
// A chunk is kWords words of which boundaries a merge depends on, from its beginning to its end, and then kWords words
// of which of these have to be left: as many merges as a vector has lanes. Chunks are compared one after the other, and
// each lane collects a bit of each, in its own part of 64 bits, which all lanes together make. So the merges of highest
// priority are those of the first lane, in the order of the chunks: then the 64 bits stand in the order of priority. 64
// merges, or what is left of them at the end, make a block of chunks.
namespace {

enum Head { kSize, kMerges, kWay, kHasLists, kHead };
constexpr std::size_t kWords = 8;
constexpr std::size_t kBlock = 64;

struct Place {
  static constexpr int kBits = 8;
  static u32 of(u32 begin, u32 boundary) { return begin << kBits | boundary; }
  static u32 begin(u32 place) { return place >> kBits; }
  static u32 boundary(u32 place) { return place & ((1 << kBits) - 1); }
};

// A chart whose boundaries are the bits of a Mask, with so many merges at most.
template <class M, std::size_t kMost>
struct OfWidth {
  using Mask = M;
  static constexpr std::size_t kCharacters = 8 * sizeof(Mask) + 1;
  static constexpr std::size_t kBlocks = kMost / kBlock;
  static constexpr std::size_t kLanes = kWords * sizeof(u32) / sizeof(Mask);
  static constexpr std::size_t kChunks = kBlock / kLanes;  // of a block, and bits that a lane collects

  static bool holds(std::size_t characters, std::size_t merges) { return characters <= kCharacters && merges <= kMost; }
  static std::size_t chunks(std::size_t merges) { return (merges + kLanes - 1) / kLanes; }
  // Lanes in the order of their bits: first those of the lower halves of 64 bits, if they are so small.
  static std::size_t lane(std::size_t number) {
    return kLanes == 4 ? number : number < 4 ? 2 * number : 2 * (number - 4) + 1;
  }
  // Where a merge stands, by its number among all merges; and by its bit, among those of its block.
  static std::size_t slot_of(std::size_t merge, std::size_t merges) {
    const std::size_t before = merge / kBlock * kBlock, i = merge - before;
    const std::size_t in_block = std::min(chunks(merges - before), kChunks);
    return before + i % in_block * kLanes + lane(i / in_block);
  }
  static std::size_t slot_of_bit(std::size_t bit) { return bit % kChunks * kLanes + lane(bit / kChunks); }

  // A bit for each merge of a block that is possible where these boundaries are left.
  static BPE_HERE u64 possible(const u32* chunk, std::size_t chunks, Mask left) {
    const Vector all = Vector{} + left;
    Vector bit, found = {}, among, needed;
    std::memcpy(&bit, kFirstBits, sizeof bit);
    for (std::size_t i = 0; i < chunks; ++i, chunk += 2 * kWords, bit += bit) {
      std::memcpy(&among, chunk, sizeof among);
      std::memcpy(&needed, chunk + kWords, sizeof needed);
      found |= reinterpret_cast<Vector>((all & among) == needed) & bit;
    }
    typedef u64 Two __attribute__((vector_size(16)));
    Two halves[2];
    std::memcpy(halves, &found, sizeof found);
    halves[0] |= halves[1];
    return halves[0][0] | halves[0][1];
  }

 private:
  typedef Mask Vector __attribute__((vector_size(kWords * sizeof(u32))));
  static constexpr u64 kFirst = 1, kSecond = kFirst << kChunks, kThird = kSecond << kChunks;
  static constexpr u64 kFourth = kThird << kChunks;
  // Of 64 bits each; of two lanes that share them, each has its own half.
  static constexpr u64 kTwice = kLanes == 4 ? 1 : 1ULL << 32 | 1;
  static constexpr u64 kFirstBits[4] = {kFirst * kTwice, kSecond * kTwice, kThird * kTwice, kFourth * kTwice};
};

using Narrow = OfWidth<u32, kBlock>;
using Wide = OfWidth<u64, 512>;

// The candidates of a step.
template <class Width>
struct Step {
  u64 blocks[Width::kBlocks];
  std::size_t count;

  BPE_HERE void find(const u32* chunks, std::size_t merges, typename Width::Mask left) {
    blocks[0] = 0;
    count = 0;
    for (std::size_t block = 0; block < Width::kBlocks; ++block, chunks += Width::kChunks * 2 * kWords) {
      const std::size_t before = block * kBlock;
      if (before >= merges) break;
      blocks[block] = Width::possible(chunks, std::min(Width::chunks(merges - before), Width::kChunks), left);
      count += static_cast<std::size_t>(__builtin_popcountll(blocks[block]));
    }
  }
  // The slot of the first candidate; the others follow.
  BPE_HERE std::size_t next() {
    std::size_t block = 0;
    if (Width::kBlocks > 1) {
      while (!blocks[block]) ++block;
    }
    const std::size_t bit = static_cast<std::size_t>(__builtin_ctzll(blocks[block]));
    blocks[block] &= blocks[block] - 1;
    return block * kBlock + Width::slot_of_bit(bit);
  }
};

// The probability that the merge of a slot is dropped.
BPE_HERE u64 missed(const Dropout& dropout, const u32*, std::size_t) { return dropout.few(0); }
BPE_HERE u64 missed(const Rates& rates, const u32* ranks, std::size_t slot) { return rates.fraction_of(ranks[slot]); }

// A step of Algorithm 1: the slot of the first candidate that survives, or kDone.
constexpr std::size_t kDone = ~std::size_t{0};

template <class Width>
BPE_HERE std::size_t survivor(Step<Width>& candidates, const Dropout& dropout, const u32*, Decoder& decoder) {
  const std::size_t dropped = decoder.dropped(dropout, candidates.count);
  if (dropped == candidates.count) return kDone;
  for (std::size_t i = 0; i < dropped; ++i) candidates.next();
  return candidates.next();
}

template <class Width>
BPE_HERE std::size_t survivor(Step<Width>& candidates, const Rates& rates, const u32* ranks, Decoder& decoder) {
  std::size_t slot = kDone;
  const std::size_t dropped = decoder.dropped_by_rate(candidates.count, [&] {
    slot = candidates.next();
    return missed(rates, ranks, slot);
  });
  return dropped == candidates.count ? kDone : slot;
}

}  // namespace

template <class Width, class D>
BPE_HERE u32 Chart::draw_here(const u32* chart, const D& dropout, Decoder& decoder, std::int32_t* out) {
  using Mask = typename Width::Mask;
  const std::size_t size = chart[kSize], merges = chart[kMerges];
  u32 ids[Chart::kMostCharacters];  // of the tokens that begin there
  const u32* characters = chart + kHead;
  for (std::size_t i = 0; i < size; i += kWords, characters += kWords) {
    std::memcpy(ids + i, characters, kWords * sizeof(u32));
  }
  const u32* step = characters;
  const u32* const chunks = step + chart[kWay];
  const std::size_t slots = Width::chunks(merges) * Width::kLanes;
  const u32* const made = chunks + slots * (2 * sizeof(Mask) / sizeof(u32));
  const u32* const ranks = made + 2 * slots;
  Mask left = ~Mask{0} >> (8 * sizeof(Mask) - (size - 1));
  const auto apply = [&](std::size_t slot) {
    const u32 place = made[2 * slot + 1];
    ids[Place::begin(place)] = made[2 * slot];
    left &= ~(Mask{1} << Place::boundary(place));
  };
  for (; step < chunks && decoder.first_survives(missed(dropout, ranks, *step)); ++step) apply(*step);
  for (Step<Width> candidates;;) {
    candidates.find(chunks, merges, left);
    if (candidates.count == 0) break;
    const std::size_t slot = survivor(candidates, dropout, ranks, decoder);
    if (slot == kDone) break;
    apply(slot);
  }
  if (!out && !chart[kHasLists]) return 1 + static_cast<u32>(__builtin_popcountll(left));
  u32 count = 0;
  const auto put = [&](u32 id) {
    if (!(id & kSeveral)) {
      if (out) out[count] = static_cast<std::int32_t>(id);
      ++count;
      return;
    }
    const u32* const list = chart + (id & ~kSeveral);
    if (out) std::memcpy(out + count, list + 1, list[0] * sizeof(u32));
    count += list[0];
  };
  put(ids[0]);
  for (; left; left &= left - 1) put(ids[__builtin_ctzll(left) + 1]);
  return count;
}

template <class Width, class D>
BPE_AVX2 u32 Chart::draw_avx2(const u32* chart, const D& dropout, Decoder& decoder, std::int32_t* out) {
  return draw_here<Width>(chart, dropout, decoder, out);
}

template <class D>
u32 Chart::draw_on(const u32* chart, const D& dropout, Decoder& decoder, std::int32_t* out) {
  const bool narrow = Narrow::holds(chart[kSize], chart[kMerges]);
  if (uses_avx2()) {
    return narrow ? draw_avx2<Narrow>(chart, dropout, decoder, out) : draw_avx2<Wide>(chart, dropout, decoder, out);
  }
  return narrow ? draw_here<Narrow>(chart, dropout, decoder, out) : draw_here<Wide>(chart, dropout, decoder, out);
}

u32 Chart::draw(const u32* chart, const Dropout& dropout, Decoder& decoder, std::int32_t* out) {
  if (const Rates* const rates = dropout.rates()) return draw_on(chart, *rates, decoder, out);
  return draw_on(chart, dropout, decoder, out);
}

// From the end of the word on: the tokens that begin further on are all known when a token is joined with them.
bool Chart::find(const Merges& merges, const std::vector<Symbol>& symbols) {
  static_assert(kMostCharacters <= Wide::kCharacters);
  constexpr bool kLowerHalfFirst = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;  // which lanes rely on
  if (!kLowerHalfFirst || symbols.size() < 2 || symbols.size() > kMostCharacters) return false;
  size_ = static_cast<u32>(symbols.size());
  tokens_.clear();
  merges_.clear();
  first_.resize(size_);
  for (u32 begin = size_; begin-- > 0;) {
    const u32 first = first_[begin] = static_cast<u32>(tokens_.size());
    tokens_.push_back({symbols[begin], begin + 1, 0, 0});
    for (u32 left = first; left < tokens_.size(); ++left) {
      const u32 middle = tokens_[left].end;
      if (middle == size_) continue;
      for (u32 right = first_[middle], end = first_[middle - 1]; right < end; ++right) {
        const Rank rank = merges.rank(tokens_[left].symbol, tokens_[right].symbol);
        if (rank == kNoMerge) continue;
        if (!Wide::holds(size_, merges_.size() + 1)) return false;
        const Token token{merges.result(rank), tokens_[right].end, 0, 0};
        u32 made = first;
        while (made < tokens_.size() && tokens_[made].end != token.end) ++made;
        if (made == tokens_.size()) tokens_.push_back(token);
        if (tokens_[made].symbol != token.symbol) return false;  // what it is depends on how it was made
        const u64 priority = static_cast<u64>(rank) << kBeginBits | begin;
        const State ends = bit(begin) | bit(token.end);
        const State among = ends | (boundaries_within(token.end) & ~boundaries_within(begin));
        merges_.push_back({priority, among, ends | bit(middle), begin, middle, made});
      }
    }
  }
  std::sort(merges_.begin(), merges_.end(), [](const Merge& a, const Merge& b) { return a.priority < b.priority; });
  return true;
}

void Chart::add_ids(State left, std::vector<u32>& out) const {
  for (u32 begin = 0; begin < size_;) {
    const u32 end = left >> begin ? begin + 1 + static_cast<u32>(__builtin_ctzll(left >> begin)) : size_;
    const Token* token = &tokens_[first_[begin]];
    while (token->end != end) ++token;
    for (u32 i = token->ids; i < token->ids_end; ++i) out.push_back(ids_[i]);
    begin = end;
  }
}

void Chart::likely_way(const Dropout& dropout, Way& way) const {
  constexpr u64 kLikely = Decoder::kWhole / 16;
  way.merges.clear();
  way.left = start();
  way.range = Decoder::kWhole;
  for (;;) {
    const auto merge = std::find_if(merges_.begin(), merges_.end(),
                                    [&](const Merge& one) { return one.is_possible(way.left); });
    if (merge == merges_.end()) return;
    const std::size_t number = static_cast<std::size_t>(merge - merges_.begin());
    way.range -= part_of(way.range, dropout.fraction_of(rank(number)));  // as the Decoder cuts it
    if (way.range < kLikely) {
      way.range = 0;
      return;
    }
    way.merges.push_back(static_cast<u16>(number));
    way.left = after(way.left, number);
  }
}

template <class Width>
void Chart::write_merges(const Way& way, bool with_ranks, std::vector<u32>& out) const {
  using Mask = typename Width::Mask;
  constexpr std::size_t kWordsOfMask = sizeof(Mask) / sizeof(u32);
  const std::size_t merges = merges_.size(), slots = Width::chunks(merges) * Width::kLanes;
  const std::size_t steps = out.size(), chunks = steps + way.merges.size();
  const std::size_t made = chunks + slots * 2 * kWordsOfMask, ranks = made + 2 * slots;
  out.resize(ranks + (with_ranks ? slots : 0));
  const auto slot_of = [&](std::size_t merge) { return Width::slot_of(merge, merges); };
  for (std::size_t i = 0; i < way.merges.size(); ++i) out[steps + i] = static_cast<u32>(slot_of(way.merges[i]));
  const auto put = [&](std::size_t slot, State among, State needed) {
    u32* const at = &out[chunks + slot / Width::kLanes * 2 * kWords + slot % Width::kLanes * kWordsOfMask];
    std::memcpy(at, &among, sizeof(Mask));  // the lower half of it, if that is so small
    std::memcpy(at + kWords, &needed, sizeof(Mask));
  };
  for (std::size_t i = merges; i < slots; ++i) put(slot_of(i), 0, 1);  // which is never met
  for (std::size_t i = 0; i < merges; ++i) {
    const Merge& merge = merges_[i];
    const std::size_t slot = slot_of(i);
    put(slot, merge.among, merge.needed);
    out[made + 2 * slot + 1] = Place::of(merge.begin, merge.middle - 1);
    if (with_ranks) out[ranks + slot] = static_cast<u32>(rank(i));
  }
  // Ids at last, since lists of them follow everything else.
  const auto id_of = [&](u32 number) {
    const Token& token = tokens_[number];
    if (token.ids_end - token.ids == 1) return ids_[token.ids];
    out[kHasLists] = 1;
    const u32 list = static_cast<u32>(out.size());
    out.push_back(token.ids_end - token.ids);
    out.insert(out.end(), ids_.begin() + token.ids, ids_.begin() + token.ids_end);
    return kSeveral | list;
  };
  for (std::size_t i = 0; i < size_; ++i) {
    const u32 id = id_of(first_[i]);
    out[kHead + i] = id;
  }
  for (std::size_t i = 0; i < merges; ++i) {
    const u32 id = id_of(merges_[i].made);
    out[made + 2 * slot_of(i)] = id;
  }
}

void Chart::write(const Way& way, bool with_ranks, std::vector<u32>& out) const {
  out.assign({size_, static_cast<u32>(merges_.size()), static_cast<u32>(way.merges.size()), 0});
  out.resize(kHead + (size_ + kWords - 1) / kWords * kWords);
  if (Narrow::holds(size_, merges_.size())) {
    write_merges<Narrow>(way, with_ranks, out);
  } else {
    write_merges<Wide>(way, with_ranks, out);
  }
}

}  // namespace bpe
