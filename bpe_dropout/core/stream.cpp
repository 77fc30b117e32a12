#include "stream.h"

#include "threads.h"

namespace bpe {

namespace {

// A line without the white space around it that subword-nmt passes through; empty if it is nothing else.
std::string_view bare(std::string_view line) {
  const std::size_t begin = line.find_first_not_of("\r ");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of("\r ") + 1 - begin);
}

// A word that recurs gets a table (or, if that would leave too much to draw, a chart), and a finer one when it has
// occurred still more often.
double finest_at(u32 count) {
  switch (count) {
    case 32: return 1.0 / 64;
    case 2048: return 1.0 / 4096;
    default: return 0;
  }
}

}  // namespace

void check_text(std::string_view text) {
  const std::size_t bad = first_invalid(text);
  if (bad == kValid) return;
  const auto before = text.substr(0, bad);
  const std::size_t last = before.rfind('\n');
  throw InvalidText(static_cast<u64>(std::count(before.begin(), before.end(), '\n')),
                    last == std::string_view::npos ? bad : bad - last - 1);
}

void Stream::flush_words() {
  words_.add(batch_.words, batch_.known);
  while (known_.size() < words_.size()) {
    Known known;
    if (divide_) {
      auto parts = divide_(words_[static_cast<u32>(known_.size())]);
      if (!parts.empty()) {
        parts_.push_back(std::move(parts));
        known.parts = static_cast<u32>(parts_.size());
      }
    }
    known_.push_back(known);
  }
}

template <class F>
void Stream::for_each_known_line(std::string_view text, Key key, F&& line) {
  constexpr std::size_t kWords = 512;
  const auto flush = [&] {
    flush_words();
    for (const u32 number : batch_.known) __builtin_prefetch(&known_[number]);
    const auto each = [&](auto&& with_words) {
      Key own = key;
      std::size_t begin = 0;
      for (std::size_t i = 0; i < batch_.lines.size(); ++i) {
        with_words(batch_.lines[i], batch_.known.data() + begin, batch_.word_ends[i] - begin, own);
        begin = batch_.word_ends[i];
        ++own.sentence;
      }
    };
    first_.clear();
    each([&](std::string_view, const u32* known, std::size_t count, const Key& own) { start_line(own, known, count); });
    const u64* first = first_.data();
    each([&](std::string_view one, const u32* known, std::size_t count, const Key& own) {
      line(Line{one, known, first, count}, own);
      first += numbers(count);
    });
    key.sentence += batch_.lines.size();
    batch_.clear();
    forget_if_too_much();
  };
  batch_.clear();  // an earlier call may have ended in the middle
  for_each_line(text, [&](std::string_view one) {
    for_each_word(split_ == Split::kSpaces ? bare(one) : one, split_,
                  [&](std::string_view word) { batch_.words.push_back(word); }, text.data() + text.size());
    batch_.lines.push_back(one);
    batch_.word_ends.push_back(batch_.words.size());
    if (batch_.words.size() >= kWords) flush();
  });
  flush();
}

template <class F, class G, class H>
void Stream::draw_word(const Key& key, u64 position, u64 first, u32 number, F&& with_ids, G&& with_tokens,
                       H&& with_pieces) {
  Known& known = known_[number];
  const u32 count = known.count < 0xFFFFFFFF ? ++known.count : known.count;
  const double finest = dropout_.never() ? (count == 1) : finest_at(count);
  if (finest > 0) {
    const Word drawn = word(number);
    const auto add = [&](auto&& id) {
      const Tables::Ref table =
          tables_.add(shelf_, *merges_, drawn, dropout_, finest, Tables::kLeast, id, scratch_);
      const bool has_one = Tables::is_table(known.table) || tables_.chart(known.table);
      if (table || has_one || dropout_.never()) return table;
      return tables_.add_chart(shelf_, *merges_, drawn, dropout_, id, scratch_);
    };
    const Tables::Ref kept = ids_ ? add(*ids_) : add(piece_itself);
    if (kept) known.table = kept;
  }
  const Find find = tables_.find(known.table, first);
  if (find != kUnresolved) return with_ids(tables_.ids(known.table) + ids_begin(find), ids_count(find));
  Decoder decoder(key, position, first);
  if (const u32* const chart = tables_.chart(known.table)) {
    std::int32_t ids[Chart::kMostIds];
    const u32 size = Chart::draw(chart, dropout_, decoder, ids);
    return with_ids(reinterpret_cast<const u32*>(ids), size);
  }
  const Word drawn = word(number);
  if (start_word(*merges_, drawn, scratch_)) {
    scratch_.tokens.run(*merges_, dropout_, &decoder);
    const auto [ids, size] = with_tokens(scratch_.tokens);
    // What becomes of the word if nothing is dropped is kept when that is first drawn.
    const u64 range = known.table || dropout_.never() ? 0 : decoder.range_to_the_end(first);
    if (range) known.table = tables_.add_likely(shelf_, range, ids, size);
    return;
  }
  draw(*merges_, drawn, dropout_, &decoder, scratch_);
  with_pieces(scratch_.pieces);
}

void Stream::start_line(const Key& key, const u32* known, std::size_t count) {
  const std::size_t begin = first_.size();
  first_.resize(begin + numbers(count));
  u64* const first = first_.data() + begin;
  for (std::size_t i = 0; i < count && !dropout_.never(); i += 4) {
    const Block block = key.block(0, i / 4);
    std::copy(block.begin(), block.end(), first + i);
  }
  for (std::size_t i = 0; i < count; ++i) tables_.prefetch(known_[known[i]].table);
}

void Stream::ids(std::string_view text, Key key, Buffer& out, std::vector<std::int64_t>& ends) {
  check_text(text);
  for_each_known_line(text, key, [&](const Line& line, const Key& own) {
    for (std::size_t i = 0; i < line.count; ++i) {
      const u32 number = line.known[i];
      draw_word(
          own, i, line.first[i], number,
          [&](const u32* ids, u32 count) {
            std::int32_t* const to = out.room(count);
            if (count) std::memcpy(to, ids, count * sizeof(u32));
            out.grow(count);
          },
          [&](const Tokens& tokens) {
            const std::size_t size = ids_->add(tokens, &out, scratch_);
            return std::pair(reinterpret_cast<const u32*>(out.data() + out.size() - size), size);
          },
          [&](const std::vector<Piece>& pieces) { ids_->add(word(number), pieces, &out); });
    }
    ends.push_back(static_cast<std::int64_t>(out.size()));
  });
}

void Stream::text(std::string_view text, Key key, std::string& out) {
  check_text(text);
  out.reserve(out.size() + text.size() + text.size() / 2);
  for_each_known_line(text, key, [&](const Line& known, const Key& own) {
    const std::string_view line = known.text;
    // White space before and after the words of a line stays, as in subword-nmt.
    std::string_view before, after;
    if (split_ == Split::kSpaces) {
      const std::string_view within = bare(line);
      const std::size_t begin = known.count ? static_cast<std::size_t>(within.data() - line.data()) : line.size();
      before = line.substr(0, begin);
      after = line.substr(begin + within.size());
    }
    out += before;
    append_words(known, own, out);
    out += after;
    out.push_back('\n');
  });
  if (!text.empty() && text.back() != '\n') out.pop_back();
}

template <class F>
void Stream::draw_line(const Line& line, const Key& key, F&& with_pieces) {
  for (std::size_t i = 0; i < line.count; ++i) {
    const u32 number = line.known[i];
    draw_word(
        key, i, line.first[i], number,
        [&](const u32* pieces, u32 count) { with_pieces(word(number), pieces, count); },
        [&](const Tokens& tokens) {
          tokens.symbols(scratch_.symbols);
          scratch_.pieces.clear();
          merges_->pieces(scratch_.symbols.data(), scratch_.symbols.size(), true, scratch_.pieces);
          with_pieces(word(number), scratch_.pieces.data(), scratch_.pieces.size());
          return std::pair(static_cast<const u32*>(scratch_.pieces.data()), scratch_.pieces.size());
        },
        [&](const std::vector<Piece>& pieces) { with_pieces(word(number), pieces.data(), pieces.size()); });
  }
}

void Stream::line(std::string_view line, const Key& key, const WithPieces& with_pieces) {
  batch_.clear();
  for_each_word(line, split_, [&](std::string_view word) { batch_.words.push_back(word); });
  flush_words();
  first_.clear();
  start_line(key, batch_.known.data(), batch_.known.size());
  draw_line({line, batch_.known.data(), first_.data(), batch_.known.size()}, key, with_pieces);
  forget_if_too_much();
}

void Stream::append_words(const Line& line, const Key& key, std::string& out) {
  if (dropout_.never()) return append_plain(line, out);
  bool first = true;
  draw_line(line, key, [&](const Word& word, const Piece* pieces, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      if (!first) out.push_back(' ');
      first = false;
      merges_->append(word, pieces[i], out);
    }
  });
}

// Without dropout a word is written the same way every time. Most are short: these are copied with what follows them,
// which costs less than to copy just as much as there is.
void Stream::append_plain(const Line& line, std::string& out) {
  const u32* const words = line.known;
  const std::size_t count = line.count;
  std::size_t size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Known& known = known_[words[i]];
    if (known.rendered_size == 0) render(words[i]);
    size += known.rendered_size;
  }
  const std::size_t begin = out.size();
  out.resize(begin + size + kShort);
  char* to = out.data() + begin;
  for (std::size_t i = 0; i < count; ++i) {
    const Known& known = known_[words[i]];
    const char* const from = rendered_.data() + known.rendered_begin;
    if (known.rendered_size <= kShort) {
      std::memcpy(to, from, kShort);
    } else {
      std::memcpy(to, from, known.rendered_size);
    }
    to += known.rendered_size;
  }
  out.resize(begin + size - (count > 0));
}

// With a space after it.
void Stream::render(u32 number) {
  Known& known = known_[number];
  const Word plain = word(number);
  draw(*merges_, plain, dropout_, nullptr, scratch_);
  known.rendered_begin = rendered_.size() - kShort;
  rendered_.resize(known.rendered_begin);
  for (const Piece piece : scratch_.pieces) {
    merges_->append(plain, piece, rendered_);
    rendered_.push_back(' ');
  }
  known.rendered_size = static_cast<u32>(rendered_.size() - known.rendered_begin);
  rendered_.append(kShort, '\0');
}

void Stream::forget_if_too_much() {
  const std::size_t used =
      words_.memory() + Tables::memory(empty_, shelf_) + rendered_.size() + known_.size() * sizeof(Known);
  if (used < memory_) return;
  words_ = Words();
  known_.clear();
  parts_.clear();
  shelf_ = empty_;
  rendered_.assign(kShort, '\0');
}

void Streams::share(std::string_view text, const Key& key,
                    const std::function<void(std::size_t, std::string_view, const Key&)>& work) {
  constexpr std::size_t kWorthAThread = 1 << 16;
  const std::size_t count = std::max<std::size_t>(1, std::min(streams_.size(), text.size() / kWorthAThread));
  std::vector<std::size_t> ends{0};
  std::vector<u64> lines{0};
  for (std::size_t i = 1; i <= count; ++i) {
    std::size_t end = text.size();
    if (i < count) {
      const std::size_t newline = text.find('\n', std::max(ends.back(), text.size() / count * i));
      if (newline != std::string_view::npos) end = newline + 1;
    }
    if (i < count) {
      const auto share = text.substr(ends.back(), end - ends.back());
      lines.push_back(lines.back() + static_cast<u64>(std::count(share.begin(), share.end(), '\n')));
    }
    ends.push_back(end);
  }
  in_threads(count, [&](std::size_t i) {
    Key own = key;
    own.sentence += lines[i];
    try {
      work(i, text.substr(ends[i], ends[i + 1] - ends[i]), own);
    } catch (const InvalidText& error) {
      throw InvalidText(lines[i] + error.line, error.byte);
    }
  });
}

std::string Streams::text(std::string_view text, const Key& key) {
  const std::lock_guard<std::mutex> lock(one_call_);
  std::vector<std::string> outs(streams_.size());
  share(text, key, [&](std::size_t i, std::string_view lines, const Key& own) {
    streams_[i].text(lines, own, outs[i]);
  });
  for (std::size_t i = 1; i < outs.size(); ++i) outs[0] += outs[i];
  return std::move(outs[0]);
}

Buffer Streams::ids(std::string_view text, const Key& key, std::vector<std::int64_t>& ends) {
  const std::lock_guard<std::mutex> lock(one_call_);
  std::vector<Buffer> outs(streams_.size());
  std::vector<std::vector<std::int64_t>> own_ends(streams_.size());
  share(text, key, [&](std::size_t i, std::string_view lines, const Key& own) {
    streams_[i].ids(lines, own, outs[i], own_ends[i]);
  });
  ends.assign(1, 0);
  Buffer all = std::move(outs[0]);
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const std::int64_t before = i ? static_cast<std::int64_t>(all.size()) : 0;
    if (outs[i].size()) {
      std::memcpy(all.room(outs[i].size()), outs[i].data(), outs[i].size() * sizeof(std::int32_t));
      all.grow(outs[i].size());
    }
    for (const std::int64_t end : own_ends[i]) ends.push_back(before + end);
  }
  return all;
}

}  // namespace bpe
