// Text as bytes: valid UTF-8 or not, where lines and words end, and numbering distinct words.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "random.h"

namespace bpe {

constexpr std::size_t kValid = static_cast<std::size_t>(-1);

// The number of bytes of the valid character at `at`, 0 if there is none. Strict, as Python is: no
// surrogates, nothing overlong, nothing past U+10FFFF.
inline std::size_t character_size(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<u8>(at[i]); };
  const auto continues = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  const std::size_t left = static_cast<std::size_t>(end - at);
  const u8 lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return left >= 2 && continues(1) ? 2 : 0;
  if (lead < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) >= 0xA0) return 0;
    return 3;
  }
  if (lead < 0xF5) {
    if (left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) >= 0x90) return 0;
    return 4;
  }
  return 0;
}

// The position of the first byte that is not valid UTF-8; kValid if there is none.
inline std::size_t first_invalid(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if (end - at >= 8) {
      u64 eight;
      std::memcpy(&eight, at, 8);
      if ((eight & 0x8080808080808080ULL) == 0) {
        at += 8;
        continue;
      }
    }
    const std::size_t size = character_size(at, end);
    if (size == 0) return static_cast<std::size_t>(at - text.data());
    at += size;
  }
  return kValid;
}

// The code point at `at`, of text known to be valid; moves `at` past it.
inline u32 next_character(const char*& at) {
  const auto byte = [&](int i) { return static_cast<u32>(static_cast<u8>(at[i])); };
  const u32 lead = byte(0);
  if (lead < 0x80) {
    at += 1;
    return lead;
  }
  if (lead < 0xE0) {
    const u32 c = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    at += 2;
    return c;
  }
  if (lead < 0xF0) {
    const u32 c = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    at += 3;
    return c;
  }
  const u32 c = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  at += 4;
  return c;
}

inline std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (static_cast<u8>(byte) & 0xC0) != 0x80; }));
}

// The code point of valid text that is one character; nothing otherwise.
inline std::optional<u32> only_character(std::string_view text) {
  if (text.empty() || character_size(text.data(), text.data() + text.size()) != text.size()) return {};
  const char* at = text.data();
  return next_character(at);
}

inline void append_character(std::string& out, u32 c) {
  const auto put = [&](u32 byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

// The number of bytes of the white space at `at`, 0 if there is none: what Python's \s matches.
inline std::size_t space_size(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<u8>(at[i]); };
  const u8 lead = byte(0);
  if (lead < 0x80) return (lead >= 0x09 && lead <= 0x0D) || (lead >= 0x1C && lead <= 0x20) ? 1 : 0;
  if (lead == 0xC2 && end - at >= 2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;
  if (end - at < 3) return 0;
  if (lead == 0xE1) return byte(1) == 0x9A && byte(2) == 0x80 ? 3 : 0;    // U+1680
  if (lead == 0xE3) return byte(1) == 0x80 && byte(2) == 0x80 ? 3 : 0;    // U+3000
  if (lead != 0xE2) return 0;
  if (byte(1) == 0x81) return byte(2) == 0x9F ? 3 : 0;                    // U+205F
  if (byte(1) != 0x80) return 0;
  return byte(2) <= 0x8A || byte(2) == 0xA8 || byte(2) == 0xA9 || byte(2) == 0xAF ? 3 : 0;
}

// Only these bytes can begin white space; all others belong to a word.
inline bool may_begin_space(char c) {
  const u8 byte = static_cast<u8>(c);
  return byte <= 0x20 || byte == 0xC2 || (byte >= 0xE1 && byte <= 0xE3);
}

inline bool holds_space(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    if (may_begin_space(*at) && space_size(at, end) != 0) return true;
  }
  return false;
}

// How a line falls into words.
enum class Split {
  kSpaces,      // at U+0020 alone, as subword-nmt does
  kWhitespace,  // at runs of \s, as fairseq does
};

// A bit for each of the 32 bytes at `at` that is a space.
inline u32 spaces_of(const char* at) {
#ifdef __SSE2__
  const __m128i space = _mm_set1_epi8(' ');
  const auto sixteen = [&](const char* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, space)));
  };
  return sixteen(at) | sixteen(at + 16) << 16;
#else
  u32 found = 0;
  for (int i = 0; i < 32; ++i) found |= static_cast<u32>(at[i] == ' ') << i;
  return found;
#endif
}

// Calls word(string_view) for each word of a line. Bytes after the line are read up to `readable`, if this is given.
template <class F>
void for_each_word(std::string_view line, Split split, F&& word, const char* readable = nullptr) {
  const char* at = line.data();
  const char* const end = at + line.size();
  if (split == Split::kSpaces) {
    const char* begin = at;
    const auto ends_at = [&](const char* stop) {
      if (stop > begin) word(std::string_view(begin, static_cast<std::size_t>(stop - begin)));
      begin = stop + 1;
    };
    for (; at < end && std::max(end, readable) - at >= 32; at += 32) {
      u32 spaces = spaces_of(at);
      if (end - at < 32) spaces &= (u32{1} << (end - at)) - 1;
      for (; spaces; spaces &= spaces - 1) ends_at(at + __builtin_ctz(spaces));
    }
    for (; at < end; ++at) {
      if (*at == ' ') ends_at(at);
    }
    ends_at(end);
    return;
  }
  while (at < end) {
    std::size_t space;
    while (at < end && (space = space_size(at, end)) != 0) at += space;
    const char* const begin = at;
    while (at < end && !(may_begin_space(*at) && space_size(at, end) != 0)) ++at;
    if (at > begin) word(std::string_view(begin, static_cast<std::size_t>(at - begin)));
  }
}

// Calls line(string_view) for each line, split at \n only, without the \n. A last line without a
// \n counts; nothing after the last \n does not.
template <class F>
void for_each_line(std::string_view text, F&& line) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* const stop = found ? static_cast<const char*>(found) : end;
    line(std::string_view(at, static_cast<std::size_t>(stop - at)));
    at = stop + 1;
  }
}

// The first and the last eight bytes of a string, which overlap if it has fewer than sixteen, and are its only ones if
// it has fewer than eight. With its size, they are all that there is to know of a string of at most sixteen bytes.
struct Outline {
  u64 first, last;
  Outline() = default;
  explicit Outline(std::string_view text) {
    const auto read = [](const char* from, auto& value) { std::memcpy(&value, from, sizeof value); };
    const char* const at = text.data();
    const std::size_t size = text.size();
    if (size >= 8) {
      read(at, first);
      read(at + size - 8, last);
      return;
    }
    last = 0;
    if (size >= 4) {
      u32 front, back;
      read(at, front);
      read(at + size - 4, back);
      first = static_cast<u64>(front) << 32 | back;
    } else if (size > 0) {
      const auto byte = [&](std::size_t i) { return static_cast<u64>(static_cast<u8>(at[i])); };
      first = byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1);
    } else {
      first = 0;
    }
  }
  static constexpr std::size_t kAll = 16;

  friend bool operator==(const Outline& a, const Outline& b) {
    return ((a.first ^ b.first) | (a.last ^ b.last)) == 0;
  }
};

inline u64 hash_of(std::string_view text, const Outline& outline) {
  constexpr u64 kA = 0x9E3779B97F4A7C15ULL, kB = 0xD6E8FEB86659FD93ULL;
  const auto mix = [](u64 a, u64 b) {
    const u128 product = static_cast<u128>(a) * b;
    return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
  };
  u64 hash = text.size() * kB;
  for (; text.size() > Outline::kAll; text.remove_prefix(8)) {
    u64 eight;
    std::memcpy(&eight, text.data(), 8);
    hash = mix(eight ^ kA, hash);
  }
  return mix(outline.first ^ kA ^ hash, outline.last ^ kB ^ hash);
}

// Numbers distinct strings in the order of their first appearance.
class Words {
 public:
  Words() { slots_.resize(1024); }

  static constexpr u32 kNone = 0xFFFFFFFF;

  u32 find(std::string_view word) const {
    const Outline outline(word);
    const Slot& slot = slots_[locate(word, outline, hash_of(word, outline))];
    return slot.id ? slot.id - 1 : kNone;
  }

  u32 add(std::string_view word) {
    const Outline outline(word);
    return add(word, outline, hash_of(word, outline));
  }

  // Adds many, a step at a time for all of them: by the time a slot, an end or an outline is read, it has been fetched
  // into the cache.
  void add(const std::vector<std::string_view>& words, std::vector<u32>& ids) {
    constexpr std::size_t kGroup = 32;
    Outline outlines[kGroup];
    u64 hashes[kGroup];
    ids.resize(words.size());
    for (std::size_t begin = 0; begin < words.size(); begin += kGroup) {
      const std::size_t size = std::min(kGroup, words.size() - begin);
      const std::string_view* const group = words.data() + begin;
      const std::size_t mask = slots_.size() - 1;
      for (std::size_t i = 0; i < size; ++i) {
        outlines[i] = Outline(group[i]);
        hashes[i] = hash_of(group[i], outlines[i]);
        __builtin_prefetch(&slots_[(hashes[i] >> 32) & mask]);
      }
      for (std::size_t i = 0; i < size; ++i) {
        const u32 id = slots_[(hashes[i] >> 32) & mask].id;
        __builtin_prefetch(&ends_[id ? id - 1 : 0]);
        __builtin_prefetch(outlines_.data() + (id ? id - 1 : 0));
      }
      for (std::size_t i = 0; i < size; ++i) ids[begin + i] = add(group[i], outlines[i], hashes[i]);
    }
  }

  std::string_view operator[](u32 id) const {
    const u64 begin = ends_[id];
    return std::string_view(bytes_).substr(begin, ends_[id + 1] - begin);
  }

  std::size_t size() const { return ends_.size() - 1; }
  const std::string& bytes() const { return bytes_; }
  const std::vector<u64>& ends() const { return ends_; }  // size() + 1 offsets, from 0
  std::size_t memory() const {
    return bytes_.size() + ends_.size() * 8 + outlines_.size() * sizeof(Outline) + slots_.size() * sizeof(Slot);
  }

 private:
  struct Slot {
    u32 hash = 0;
    u32 id = 0;  // 0: empty; else the number of the string, and one
  };

  u32 add(std::string_view word, const Outline& outline, u64 hash) {
    std::size_t at = locate(word, outline, hash);
    if (slots_[at].id) return slots_[at].id - 1;
    const u32 id = static_cast<u32>(size());
    bytes_.append(word);
    ends_.push_back(bytes_.size());
    outlines_.push_back(outline);
    slots_[at] = {static_cast<u32>(hash), id + 1};
    if (ends_.size() * 2 > slots_.size()) grow();
    return id;
  }

  std::size_t locate(std::string_view word, const Outline& outline, u64 hash) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = (hash >> 32) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.id == 0) return at;
      if (slot.hash == static_cast<u32>(hash) && is(slot.id - 1, word, outline)) return at;
    }
  }

  bool is(u32 id, std::string_view word, const Outline& outline) const {
    const std::string_view known = (*this)[id];
    if (known.size() != word.size() || !(outlines_[id] == outline)) return false;
    return word.size() <= Outline::kAll || known == word;
  }

  void grow() {
    std::vector<Slot> bigger(slots_.size() * 2);
    const std::size_t mask = bigger.size() - 1;
    for (u32 id = 0; id < size(); ++id) {
      const u64 hash = hash_of((*this)[id], outlines_[id]);
      std::size_t at = (hash >> 32) & mask;
      while (bigger[at].id) at = (at + 1) & mask;
      bigger[at] = {static_cast<u32>(hash), id + 1};
    }
    slots_.swap(bigger);
  }

  std::string bytes_;
  std::vector<u64> ends_{0};
  std::vector<Outline> outlines_;
  std::vector<Slot> slots_;
};

}  // namespace bpe
