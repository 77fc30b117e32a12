// Randomness: counter-based random numbers, and how they become decisions.
//
// A word's random bits are a pure function of (seed, epoch, side, sentence, position): Philox-4x64-10
// (Salmon et al., 2011) turns these numbers, written as its key and counter, into bits. There is no
// state to seed, share, save or restore.
//
// The bits are spent by arithmetic decoding. They are read as one long binary fraction, and each
// decision of Algorithm 1 cuts the interval that the fraction is known to lie in, in proportion to
// the probabilities of its outcomes. So one 64-bit number settles all the decisions of most words,
// and a word's segmentation is a function of that number: tables (table.h) can hold that function
// for frequent words, and give the very result that the walk through Algorithm 1 would.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace bpe {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using u128 = unsigned __int128;

inline u64 mulhi(u64 a, u64 b) { return static_cast<u64>((static_cast<u128>(a) * b) >> 64); }

using Block = std::array<u64, 4>;

// The Philox-4x64 bijection with ten rounds, as Random123 and numpy have it.
inline Block philox(Block counter, std::array<u64, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const u128 a = static_cast<u128>(0xD2E7470EE14C6C93ULL) * counter[0];
    const u128 b = static_cast<u128>(0xCA5A826395121157ULL) * counter[2];
    counter = {static_cast<u64>(b >> 64) ^ counter[1] ^ key[0], static_cast<u64>(b),
               static_cast<u64>(a >> 64) ^ counter[3] ^ key[1], static_cast<u64>(a)};
    key[0] += 0x9E3779B97F4A7C15ULL;
    key[1] += 0xBB67AE8584CAA73BULL;
  }
  return counter;
}

// Names the draws of one sentence. Equal keys, equal draws; any difference, independent ones.
struct Key {
  u64 seed = 0, epoch = 0, side = 0, sentence = 0;

  // Stream 0 holds the first 64 bits of every word of the sentence, four words to a block; stream
  // 1 + i holds the further bits of word i, which only long words need.
  Block block(u64 stream, u64 index) const {
    return philox({index, sentence, epoch, (side << 40) + stream}, {seed, 0x4250452D64726F70ULL});
  }
  u64 first(u64 position) const { return block(0, position / 4)[position % 4]; }
};

// Probabilities as fractions of 2^64. 1 itself, which no such fraction is, has a number of its own.
constexpr u64 kAll = ~u64{0};
inline u64 fraction(double p) { return p >= 1 ? kAll : p <= 0 ? 0 : static_cast<u64>(std::ldexp(p, 64)); }
// A part of a range; and of a part of it.
inline u64 part_of(u64 range, u64 part) { return part == kAll ? range : mulhi(range, part); }
inline u64 part_of_part(u64 part, u64 other) { return part == kAll ? other : part_of(part, other); }

// Beyond so many dropped candidates in a row the count starts anew: dropping has no memory.
constexpr std::size_t kRound = 4096;

// A rate for each merge, by its rank: the probability that it is dropped.
class Rates {
 public:
  explicit Rates(std::vector<double> rates) : rates_(std::move(rates)) {
    for (const double rate : rates_) fractions_.push_back(fraction(rate));
  }
  static constexpr bool never() { return false; }
  double p(std::size_t rank) const { return rates_[rank]; }
  u64 fraction_of(std::size_t rank) const { return fractions_[rank]; }

 private:
  std::vector<double> rates_;
  std::vector<u64> fractions_;
};

// How strongly merges are dropped: all with the same p, or each with its own rate.
class Dropout {
 public:
  explicit Dropout(double p) : p_(p) {
    few_[0] = fraction(p);
    if (p <= 0 || p >= 1) return;
    const u64 q = few_[0];
    for (u64 all = q; missed_.size() < kRound; all = mulhi(all, q)) {
      missed_.push_back(all);
      if (all == 0) break;
    }
    std::copy_n(missed_.begin(), std::min(missed_.size(), kFew), few_);
  }
  // Rates that are all the same are a number.
  static Dropout of(std::vector<double> rates) {
    const bool same = std::adjacent_find(rates.begin(), rates.end(), std::not_equal_to<>()) == rates.end();
    Dropout dropout(same && !rates.empty() ? rates[0] : 0);
    if (same) return dropout;
    dropout.rates_ = std::make_shared<const Rates>(std::move(rates));
    return dropout;
  }
  // The rate of each merge, or null if all have the same p. Where it is not null, the rest is not to be asked for.
  const Rates* rates() const { return rates_.get(); }
  bool never() const { return p_ <= 0 && !rates_; }
  bool always() const { return p_ >= 1; }
  double p(std::size_t rank) const { return rates_ ? rates_->p(rank) : p_; }
  u64 fraction_of(std::size_t rank) const { return rates_ ? rates_->fraction_of(rank) : few_[0]; }

  // The probability that the first k + 1 candidates are all dropped, p^(k+1), as a fraction of 2^64.
  std::size_t round() const { return missed_.size(); }
  u64 missed(std::size_t k) const { return missed_[k]; }
  static constexpr std::size_t kFew = 4;
  u64 few(std::size_t k) const { return few_[k]; }  // the same for the first kFew, however many there are

 private:
  double p_;
  std::vector<u64> missed_;
  u64 few_[kFew] = {};
  std::shared_ptr<const Rates> rates_;
};

// Spends the random bits of one word. The invariant is offset < range, offset uniform.
//
// A range is never less than 2^48 when a decision is taken, so every probability is met to within
// 2^-48, and no rounding depends on the machine.
class Decoder {
 public:
  static constexpr u64 kWhole = 1ULL << 63;  // the range at the start
  static constexpr u64 kLeast = 1ULL << 48;  // below it, further bits are taken in

  Decoder(const Key& key, u64 position, u64 first)
      : range_(kWhole), offset_(first >> 1), key_(key), stream_(1 + position) {}

  // Of `candidates` merges, in the order of their priority, how many are dropped before the first
  // that survives; `candidates` itself if none survives.
  std::size_t dropped(const Dropout& dropout, std::size_t candidates) {
    if (dropout.always()) return candidates;
    // The first few without a branch for each, since none of them could be predicted.
    constexpr std::size_t kFew = Dropout::kFew;
    u64 ends[kFew + 1];  // where the regions of 0, 1, ... dropped candidates end
    ends[0] = range_;
    std::size_t dropped = 0;
    for (std::size_t k = 0; k < kFew; ++k) {
      const u64 below = k < candidates ? mulhi(range_, dropout.few(k)) : 0;
      ends[k + 1] = below;
      dropped += offset_ < below;
    }
    if (dropped == kFew) return dropped_more(dropout, candidates);
    range_ = ends[dropped] - ends[dropped + 1];
    offset_ -= ends[dropped + 1];
    refill();
    return dropped;
  }

  // The same where each has its own rate: next() gives that of the next candidate, as a fraction of 2^64.
  template <class Next>
  std::size_t dropped_by_rate(std::size_t candidates, Next&& next) {
    u64 missed = kAll;
    return one_by_one(candidates, kRound, [&](std::size_t k) {
      missed = k == 0 ? next() : part_of_part(missed, next());
      return part_of(range_, missed);
    });
  }

  // Whether the first candidate survives, which is dropped with this probability. If not, nothing is decided:
  // dropped() takes the same decision again.
  bool first_survives(u64 missed) {
    const u64 below = part_of(range_, missed);
    if (offset_ < below) return false;
    range_ -= below;
    offset_ -= below;
    refill();
    return true;
  }

  // After all decisions of a word: if they are those of all numbers from some one on, up to the last, as they are if
  // nothing is dropped, how many numbers these are, of kWhole; else 0, as where one number was not enough.
  u64 range_to_the_end(u64 first) const {
    return blocks_ == 0 && (first >> 1) - offset_ + range_ == kWhole ? range_ : 0;
  }

 private:
  std::size_t dropped_more(const Dropout& dropout, std::size_t candidates) {
    return one_by_one(candidates, dropout.round(), [&](std::size_t k) { return mulhi(range_, dropout.missed(k)); });
  }
  // In rounds of so many candidates, below_of(k) is where the region ends in which more than k of a round are dropped.
  template <class Below>
  std::size_t one_by_one(std::size_t candidates, std::size_t most, Below&& below_of) {
    for (std::size_t done = 0;;) {
      const std::size_t round = std::min(candidates - done, most);
      u64 above = range_;
      for (std::size_t k = 0; k < round; ++k) {
        const u64 below = below_of(k);
        if (offset_ >= below) {
          range_ = above - below;
          offset_ -= below;
          refill();
          return done + k;
        }
        above = below;
      }
      range_ = above;
      refill();
      done += round;
      if (done == candidates) return candidates;
    }
  }
  void refill() {
    while (range_ < kLeast) {
      if (used_ == 16) {
        bits_ = key_.block(stream_, blocks_++);
        used_ = 0;
      }
      range_ <<= 16;
      offset_ = (offset_ << 16) | (bits_[used_ / 4] >> (16 * (used_ % 4)) & 0xFFFF);
      ++used_;
    }
  }

  u64 range_, offset_;
  Key key_;
  u64 stream_, blocks_ = 0;
  unsigned used_ = 16;
  Block bits_{};
};

}  // namespace bpe
