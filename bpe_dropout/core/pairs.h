// The pairs of adjacent symbols and how often they occur, as subword-nmt keeps them while it learns.
//
// subword-nmt takes the maximum over a dictionary of the frequent pairs only. The others are put aside and come back
// when the maximum is below a threshold. On most text that changes nothing but time. Where it does (literal.h), the
// merges depend on when a pair was put aside and with which count, so that is done here to the letter: `count` is the
// entry of its dictionary `stats`, `counted` says whether there is one, and `rest` is the entry of `big_stats`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "merges.h"

namespace bpe {

using i64 = std::int64_t;

// The strings of symbols, numbered, and their order: that of their code points, as Python compares strings.
class Spellings {
 public:
  Symbol add(std::string_view text);
  std::string_view operator[](Symbol symbol) const { return strings_[symbol]; }
  std::size_t size() const { return strings_.size(); }
  // How many characters of a word the symbol covers: those of its string, "</w>" at the end aside.
  u32 length(Symbol symbol) const { return lengths_[symbol]; }
  // Whether there is white space in it, as there can be other than U+0020.
  bool has_space(Symbol symbol) const { return has_space_[symbol] != 0; }
  u64 prefix(Symbol symbol) const { return prefixes_[symbol]; }
  bool less(Symbol a, Symbol b) const {
    return prefixes_[a] != prefixes_[b] ? prefixes_[a] < prefixes_[b] : strings_[a] < strings_[b];
  }

 private:
  Words strings_;
  std::vector<u64> prefixes_;  // the first eight bytes, to be compared as a number
  std::vector<u32> lengths_;
  std::vector<u8> has_space_;
};

// A hash table from 64 bits to 32.
class Table64 {
 public:
  static constexpr u32 kNone = 0xFFFFFFFF;

  explicit Table64(std::size_t slots = 1024) : slots_(slots) {}

  // The value of a key; kNone for a key that is new, which is then to be set.
  u32& operator[](u64 key) {
    if ((size_ + 1) * 3 > slots_.size() * 2) grow();
    Slot& slot = slots_[locate(key)];
    if (slot.value == kNone) {
      slot.low = static_cast<u32>(key);
      slot.high = static_cast<u32>(key >> 32);
      ++size_;
    }
    return slot.value;
  }
  u32 find(u64 key) const { return slots_[locate(key)].value; }
  void prefetch(u64 key) const { __builtin_prefetch(&slots_[hash(key) & (slots_.size() - 1)]); }

 private:
  struct Slot {
    u32 low = 0, high = 0, value = kNone;
  };

  static u64 hash(u64 key) {
    const u128 product = static_cast<u128>(key ^ 0xD6E8FEB86659FD93ULL) * 0x9E3779B97F4A7C15ULL;
    return static_cast<u64>(product >> 64) ^ static_cast<u64>(product);
  }
  std::size_t locate(u64 key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash(key) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.value == kNone || (slot.low == static_cast<u32>(key) && slot.high == key >> 32)) return at;
    }
  }
  void grow();

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

// Places in the text where a pair occurs. Most pairs occur once: that place needs no memory of its own.
class Places {
 public:
  Places() = default;
  Places(Places&& other) noexcept { swap(other); }
  Places& operator=(Places&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Places() {
    if (size_ > 1) delete[] many_;
  }

  void resize(u32 size) {  // of an empty list
    size_ = size;
    if (size > 1) many_ = new u32[size];
  }
  u32* begin() { return size_ > 1 ? many_ : &one_; }
  u32* end() { return begin() + size_; }
  u32 size() const { return size_; }

 private:
  void swap(Places& other) {
    std::swap(many_, other.many_);
    std::swap(size_, other.size_);
  }

  union {
    u32* many_ = nullptr;
    u32 one_;
  };
  u32 size_ = 0;
};

class Pairs {
 public:
  using Number = u32;
  static constexpr Number kNone = Table64::kNone;

  struct Pair {
    Symbol left, right;
    i64 count = 0;  // 0 while it is not counted
    i64 rest = 0;
    Places places;
    bool counted = false;
    bool changed = false;
  };

  explicit Pairs(const Spellings& spellings) : spellings_(spellings) {}

  Number find(Symbol left, Symbol right) const { return numbers_.find(key(left, right)); }
  Number add(Symbol left, Symbol right);
  Pair& operator[](Number number) { return pairs_[number >> kChunkBits][number & kInChunk]; }
  std::size_t size() const { return size_; }
  void prefetch(Symbol left, Symbol right) const { numbers_.prefetch(key(left, right)); }

  // Called once, when the counts of all pairs are there.
  void start();
  void change(Number number, i64 by);
  // The most frequent pair; of equally frequent ones, the last in the order of their strings. kNone: there is no pair.
  Number best(u64 merges_done);
  // The best pair has been merged, and all changes made.
  void merged(Number number, u64 merges_done);

 private:
  struct Entry {
    i64 count;
    u64 prefix;  // of the left symbol: it settles most comparisons
    Number number;
  };

  static u64 key(Symbol left, Symbol right) { return static_cast<u64>(left) << 32 | right; }
  bool is_rare(i64 count) const { return static_cast<double>(count) < threshold_; }
  Entry entry(Number number, i64 count) { return {count, spellings_.prefix((*this)[number].left), number}; }
  bool less(const Entry& a, const Entry& b);
  void push(Number number);
  // The greatest entry of the heap that is true, at least the threshold; kNone if there is none.
  Number from_heap();
  void put_rare_aside();
  Number bring_back(u64 merges_done);

  // In chunks, so that growing moves nothing.
  static constexpr int kChunkBits = 12;
  static constexpr u32 kInChunk = (1u << kChunkBits) - 1;

  const Spellings& spellings_;
  std::vector<std::unique_ptr<Pair[]>> pairs_;
  std::size_t size_ = 0;
  Table64 numbers_;
  double threshold_ = 0;
  std::vector<Number> counted_;  // those that are, in any order
  std::vector<Number> changed_;  // by the merge that is being made, upwards or from nothing
  // A heap of all that are counted and not rare. Counts in it may be too high, and are put right when they come up.
  std::vector<Entry> heap_;
};

}  // namespace bpe
