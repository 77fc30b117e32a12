// A whole epoch of a loaded corpus: the length of every sentence, or all of its ids, on any number of
// threads. What is drawn depends on the key alone; lengths and ids see the same draws.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <unordered_map>

#include "table.h"

namespace bpe {

// A growing array of ids that is not cleared when it grows, and can be given away. In a line of the cache of its own,
// since threads fill theirs side by side.
class alignas(64) Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  // Room for `more` ids past the end, to be made the buffer's own with grow().
  std::int32_t* room(std::size_t more) {
    if (size_ + more > capacity_) reserve(std::max(size_ + more, 2 * capacity_));
    return data_ + size_;
  }
  void grow(std::size_t more) { size_ += more; }
  void push(std::int32_t id) {
    *room(1) = id;
    ++size_;
  }
  void reserve(std::size_t capacity) {
    void* const moved = std::realloc(data_, capacity * sizeof(std::int32_t));
    if (!moved) throw std::bad_alloc();
    data_ = static_cast<std::int32_t*>(moved);
    capacity_ = capacity;
  }
  std::int32_t* data() { return data_; }
  std::size_t size() const { return size_; }
  std::int32_t* release() {
    std::int32_t* const data = data_;
    data_ = nullptr;
    size_ = capacity_ = 0;
    return data;
  }

 private:
  std::int32_t* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

// The ids of pieces in a dictionary; a piece that it does not have is `unknown`.
class Ids {
 public:
  Ids(std::shared_ptr<const Merges> merges, const std::vector<std::pair<std::string, std::int32_t>>& dictionary,
      std::int32_t unknown);

  std::int64_t operator()(const Word& word, Piece piece) const {
    if (piece < known_.size()) return known_[piece];
    if (piece & kForeign) {
      const auto found = characters_.find(piece);
      return found == characters_.end() ? unknown_ : found->second;
    }
    return look_up(word, piece);
  }

  // Adds the ids of what was drawn, and returns how many there are. `out` null: the number alone.
  u32 add(const Word& word, const std::vector<Piece>& pieces, Buffer* out) const;
  // The same of a word of one part, from its tokens, which say all of it.
  u32 add(const Tokens& tokens, Buffer* out, Scratch& scratch) const;

 private:
  std::int64_t look_up(const Word& word, Piece piece) const;

  std::shared_ptr<const Merges> merges_;
  Words strings_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int64_t> known_;
  static constexpr std::int32_t kSeveral = -1;
  std::vector<std::int32_t> of_inner_, of_last_;  // of symbols that are one piece with an id; else kSeveral
  std::unordered_map<Piece, std::int32_t> characters_;
  std::int32_t unknown_;
};

// A corpus in memory: sentences of word numbers, and the words.
struct Corpus {
  const u32* words = nullptr;  // null: sentence i is the one word i
  const u64* sentence_ends = nullptr;
  std::size_t sentences = 0;
  const char* bytes = nullptr;
  const u64* type_ends = nullptr;
  std::size_t types = 0;

  std::string_view type(u32 t) const {
    return {bytes + type_ends[t], static_cast<std::size_t>(type_ends[t + 1] - type_ends[t])};
  }
  std::size_t words_before(std::size_t sentence) const { return words ? sentence_ends[sentence] : sentence; }
  u32 word(std::size_t i) const { return words ? words[i] : static_cast<u32>(i); }
};

// Which sentences: count of them from `first` on, or those listed.
struct Selection {
  std::size_t first = 0, count = 0;
  const std::int64_t* listed = nullptr;
  std::size_t operator[](std::size_t i) const { return listed ? static_cast<std::size_t>(listed[i]) : first + i; }
};

// The ids that every sentence begins and ends with.
struct Frame {
  std::vector<std::int32_t> before, after;
  u32 size() const { return static_cast<u32>(before.size() + after.size()); }
};

// What becomes of the sentences of a selection: their lengths alone, or their ids and where these end.
struct Drawn {
  std::int32_t* lengths = nullptr;
  Buffer* ids = nullptr;  // null: the lengths alone
  std::int64_t* ends = nullptr;

  void add(const std::vector<std::int32_t>& some) const {
    if (!ids) return;
    for (const std::int32_t id : some) ids->push(id);
  }
  // Sentence i of the selection, which is so long, is drawn.
  void end(std::size_t i, u32 length) const {
    if (ids) {
      ends[i + 1] = static_cast<std::int64_t>(ids->size());
    } else {
      lengths[i] = static_cast<std::int32_t>(length);
    }
  }
};

class Sampler {
 public:
  Sampler(const Corpus& corpus, Frame frame) : corpus_(corpus), frame_(std::move(frame)) {}
  virtual ~Sampler() = default;

  // key.sentence is the number of the sentence, whatever is selected.
  void lengths(Key key, const Selection& which, int threads, std::int32_t* out) const;
  // The ids of the selected sentences, one after the other; `ends` gets count + 1 offsets.
  Buffer ids(Key key, const Selection& which, int threads, std::int64_t* ends) const;

  const Corpus& corpus() const { return corpus_; }

 protected:
  // Draws the sentences from `begin` to `end` of the selection, one after the other.
  virtual void sentences(Key key, const Selection& which, std::size_t begin, std::size_t end,
                         const Drawn& out) const = 0;
  const Frame& frame() const { return frame_; }

 private:
  Corpus corpus_;
  Frame frame_;
};

// BPE-dropout.
class DropoutSampler : public Sampler {
 public:
  using Parts = std::unordered_map<u32, std::vector<Part>>;  // of the words that glossaries divide

  DropoutSampler(const Corpus& corpus, std::shared_ptr<const Merges> merges, std::shared_ptr<const Ids> ids,
                 Parts parts, Dropout dropout, const u64* counts, std::size_t memory, int threads, Frame frame);

  std::size_t memory() const { return memory_; }
  std::size_t tables() const { return table_count_; }  // words that have one
  std::size_t charts() const { return chart_count_; }

 protected:
  void sentences(Key key, const Selection& which, std::size_t begin, std::size_t end, const Drawn& out) const override;

 private:
  Word word(u32 type) const {
    const auto found = parts_.empty() ? parts_.end() : parts_.find(type);
    return {corpus().type(type), found == parts_.end() ? nullptr : &found->second};
  }
  u32 draw_word(const Key& key, u64 position, u64 first, u32 type, Tables::Ref ref, Buffer* out,
                Scratch& scratch) const;

  std::shared_ptr<const Merges> merges_;
  std::shared_ptr<const Ids> ids_;
  Parts parts_;
  Dropout dropout_;
  Tables tables_;
  std::vector<Tables::Ref> refs_;
  std::size_t memory_ = 0, table_count_ = 0, chart_count_ = 0;
};

// Distributions that are given: for each word (or sentence) its segmentations and their
// cumulated probabilities, as fractions of 2^64.
class ListSampler : public Sampler {
 public:
  ListSampler(const Corpus& corpus, std::vector<u64> outcome_ends, std::vector<u64> cumulated,
              std::vector<u64> id_ends, std::vector<std::int32_t> ids, Frame frame)
      : Sampler(corpus, std::move(frame)),
        outcome_ends_(std::move(outcome_ends)),
        cumulated_(std::move(cumulated)),
        id_ends_(std::move(id_ends)),
        ids_(std::move(ids)) {}

  // The number of the outcome, among those from `begin` to `end`, that `first` falls to.
  static std::size_t choose(const u64* begin, const u64* end, u64 first) {
    return static_cast<std::size_t>(std::upper_bound(begin, end - 1, first) - begin);
  }

 protected:
  void sentences(Key key, const Selection& which, std::size_t begin, std::size_t end, const Drawn& out) const override;

 private:
  std::vector<u64> outcome_ends_, cumulated_, id_ends_;
  std::vector<std::int32_t> ids_;
};

}  // namespace bpe
