// Text in, text or ids out, in one go: for commands and for text that is seen once. Words are remembered, and those
// that keep recurring get tables or charts; what is drawn is what draw() draws.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "sampler.h"

namespace bpe {

struct InvalidText : std::runtime_error {
  InvalidText(u64 line, u64 byte)
      : std::runtime_error("invalid UTF-8"), line(line), byte(byte) {}
  u64 line, byte;  // from 0, of the text passed in; byte within the line
};

// Throws InvalidText, if it is.
void check_text(std::string_view text);

// How glossaries divide a word; empty if they leave it alone.
using Divide = std::function<std::vector<Part>(std::string_view)>;

class Stream {
 public:
  // With `ids`, ids() may be called; without, text().
  Stream(std::shared_ptr<const Merges> merges, std::shared_ptr<const Ids> ids, Dropout dropout, Split split,
         Divide divide, std::size_t memory)
      : merges_(std::move(merges)),
        ids_(std::move(ids)),
        dropout_(std::move(dropout)),
        split_(split),
        divide_(std::move(divide)),
        memory_(memory),
        tables_(memory),
        empty_(tables_.shelves(1)[0]),
        shelf_(empty_) {}

  // key.sentence is the number of the first line.
  void text(std::string_view text, Key key, std::string& out);
  // One line, which is valid: calls with_pieces(word, pieces, count) for each word.
  using WithPieces = std::function<void(const Word&, const Piece*, std::size_t)>;
  void line(std::string_view line, const Key& key, const WithPieces& with_pieces);
  // `ends` gets the end of each line in `out`.
  void ids(std::string_view text, Key key, Buffer& out, std::vector<std::int64_t>& ends);

 private:
  struct Known {
    u64 rendered_begin = 0;
    u32 rendered_size = 0;
    u32 count = 0;
    Tables::Ref table = 0;
    u32 parts = 0;  // 0: not divided; else its number in parts_, from 1
  };

  // Some lines and their words, dealt with together so that the look-ups overlap.
  struct Batch {
    std::vector<std::string_view> lines;
    std::vector<std::size_t> word_ends;  // for each line
    std::vector<std::string_view> words;
    std::vector<u32> known;  // for each word
    void clear() {
      lines.clear();
      word_ends.clear();
      words.clear();
    }
  };
  // A line, the numbers of its words as they are known, and their random numbers.
  struct Line {
    std::string_view text;
    const u32* known;
    const u64* first;
    std::size_t count;
  };
  // Calls line(Line, key) for each line, with the key of its draws.
  template <class F>
  void for_each_known_line(std::string_view text, Key key, F&& line);
  void flush_words();

  Word word(u32 known) const {
    const u32 parts = known_[known].parts;
    return {words_[known], parts ? &parts_[parts - 1] : nullptr};
  }
  // Calls with_ids(ids, count) if they come from what is kept of the word, else with_tokens(tokens),
  // which returns the ids and their number, or with_pieces(pieces).
  template <class F, class G, class H>
  void draw_word(const Key& key, u64 position, u64 first, u32 known, F&& with_ids, G&& with_tokens,
                 H&& with_pieces);
  // Adds the random numbers of a line's words to first_, which are four at a time, and may be too many.
  void start_line(const Key& key, const u32* known, std::size_t count);
  static std::size_t numbers(std::size_t count) { return (count + 3) / 4 * 4; }
  // Draws the words of a line, as pieces.
  template <class F>
  void draw_line(const Line& line, const Key& key, F&& with_pieces);
  void append_words(const Line& line, const Key& key, std::string& out);
  void append_plain(const Line& line, std::string& out);
  void render(u32 known);
  void forget_if_too_much();

  std::shared_ptr<const Merges> merges_;
  std::shared_ptr<const Ids> ids_;
  Dropout dropout_;
  Split split_;
  Divide divide_;
  std::size_t memory_;

  Batch batch_;
  std::vector<u64> first_;
  Words words_;
  std::vector<Known> known_;
  std::deque<std::vector<Part>> parts_;
  Tables tables_;
  const Tables::Shelf empty_;
  Tables::Shelf shelf_;
  static constexpr std::size_t kShort = 16;  // bytes that can always be copied
  std::string rendered_ = std::string(kShort, '\0');
  Scratch scratch_;
};

// The same on several threads: each takes a share of the lines, and remembers its own words.
class Streams {
 public:
  Streams(std::shared_ptr<const Merges> merges, std::shared_ptr<const Ids> ids, Dropout dropout, Split split,
          const Divide& divide, std::size_t memory, std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) {
      streams_.emplace_back(merges, ids, dropout, split, divide, memory / threads);
    }
  }

  std::string text(std::string_view text, const Key& key);
  Buffer ids(std::string_view text, const Key& key, std::vector<std::int64_t>& ends);

 private:
  // Calls work(i, lines, key) for the share of each stream.
  void share(std::string_view text, const Key& key,
             const std::function<void(std::size_t, std::string_view, const Key&)>& work);

  std::mutex one_call_;  // at a time: the streams remember words
  std::deque<Stream> streams_;
};

}  // namespace bpe
