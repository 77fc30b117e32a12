#include "stream.h"

#include "threads.h"

namespace bpe {

namespace {

// A word that keeps coming back gets a table, and a finer one when it has come still more often.
double finest_at(u32 count) {
  switch (count) {
    case 8: return 1.0 / 16;
    case 64: return 1.0 / 256;
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

u32 Stream::meet(std::string_view word) {
  const u32 id = words_.add(word);
  if (id < known_.size()) return id;
  Known& known = known_.emplace_back();
  if (divide_) {
    auto parts = divide_(word);
    if (!parts.empty()) {
      parts_.push_back(std::move(parts));
      known.parts = static_cast<u32>(parts_.size());
    }
  }
  return id;
}

template <class F, class G>
void Stream::draw_word(const Key& key, u64 position, u64 first, u32 number, F&& with_find, G&& with_pieces) {
  Known& known = known_[number];
  const u32 count = known.count < 0xFFFFFFFF ? ++known.count : known.count;
  const double finest = dropout_.never() ? (count == 1) : finest_at(count);
  if (finest > 0) {
    const Word drawn = word(number);
    known.table = ids_ ? tables_.add(*merges_, drawn, dropout_, finest, *ids_)
                       : tables_.add(*merges_, drawn, dropout_, finest,
                                     [](const Word&, Piece piece) { return static_cast<std::int64_t>(piece); });
  }
  if (known.table) {
    const Find find = tables_.find(known.table, first);
    if (find != kUnresolved) return with_find(known, find);
  }
  Decoder decoder(key, position, first);
  draw(*merges_, word(number), dropout_, &decoder, scratch_);
  with_pieces(scratch_.pieces);
}

void Stream::ids(std::string_view text, Key key, Buffer& out, std::vector<std::int64_t>& ends) {
  check_text(text);
  for_each_line(text, [&](std::string_view line) {
    u64 position = 0;
    Block block{};
    for_each_word(line, split_, [&](std::string_view text_of_word) {
      if (position % 4 == 0) block = key.block(0, position / 4);
      const u32 number = meet(text_of_word);
      draw_word(
          key, position, block[position % 4], number,
          [&](const Known& known, Find find) {
            std::memcpy(out.room(kMostIds + 4), tables_.ids(known.table) + ids_begin(find), 4 * ids_count(find));
            out.grow(ids_count(find));
          },
          [&](const std::vector<Piece>& pieces) {
            for (const Piece piece : pieces) {
              const std::int64_t id = (*ids_)(word(number), piece);
              if (id != kNoId) out.push(static_cast<std::int32_t>(id));
            }
          });
      ++position;
    });
    ends.push_back(static_cast<std::int64_t>(out.size()));
    ++key.sentence;
    forget_if_too_much();
  });
}

void Stream::text(std::string_view text, Key key, std::string& out) {
  check_text(text);
  out.reserve(out.size() + text.size() + text.size() / 2);
  const bool closed = !text.empty() && text.back() == '\n';
  for_each_line(text, [&](std::string_view line) {
    line_text(line, key, out);
    out.push_back('\n');
    ++key.sentence;
    forget_if_too_much();
  });
  if (!text.empty() && !closed) out.pop_back();
}

// White space before and after the words of a line stays, as in subword-nmt.
void Stream::line_text(std::string_view line, const Key& key, std::string& out) {
  if (split_ == Split::kSpaces) {
    const std::size_t begin = line.find_first_not_of("\r ");
    if (begin == std::string_view::npos) {
      out += line;
      return;
    }
    const std::size_t end = line.find_last_not_of("\r ") + 1;
    out += line.substr(0, begin);
    line_words(line.substr(begin, end - begin), key, out);
    out += line.substr(end);
  } else {
    line_words(line, key, out);
  }
}

void Stream::line_words(std::string_view line, const Key& key, std::string& out) {
  u64 position = 0;
  Block block{};
  for_each_word(line, split_, [&](std::string_view text_of_word) {
    if (position > 0) out.push_back(' ');
    const u32 number = meet(text_of_word);
    if (dropout_.never()) {
      append_plain(number, out);
    } else {
      if (position % 4 == 0) block = key.block(0, position / 4);
      const auto append = [&](const u32* pieces, std::size_t count) {
        const Word drawn = word(number);
        for (std::size_t i = 0; i < count; ++i) {
          if (i > 0) out.push_back(' ');
          merges_->append(drawn, pieces[i], out);
        }
      };
      draw_word(
          key, position, block[position % 4], number,
          [&](const Known& known, Find find) {
            append(tables_.ids(known.table) + ids_begin(find), ids_count(find));
          },
          [&](const std::vector<Piece>& pieces) { append(pieces.data(), pieces.size()); });
    }
    ++position;
  });
}

// Without dropout a word is written the same way every time.
void Stream::append_plain(u32 number, std::string& out) {
  Known& known = known_[number];
  if (known.rendered_size == 0) {
    const Word plain = word(number);
    draw(*merges_, plain, dropout_, nullptr, scratch_);
    known.rendered_begin = rendered_.size();
    for (std::size_t i = 0; i < scratch_.pieces.size(); ++i) {
      if (i > 0) rendered_.push_back(' ');
      merges_->append(plain, scratch_.pieces[i], rendered_);
    }
    known.rendered_size = static_cast<u32>(rendered_.size() - known.rendered_begin);
  }
  out.append(rendered_, known.rendered_begin, known.rendered_size);
}

void Stream::forget_if_too_much() {
  const std::size_t used = words_.memory() + tables_.memory() + rendered_.size() + known_.size() * sizeof(Known);
  if (used < memory_) return;
  words_ = Words();
  known_.clear();
  parts_.clear();
  tables_.clear();
  rendered_.clear();
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
    const auto share = text.substr(ends.back(), end - ends.back());
    lines.push_back(lines.back() + static_cast<u64>(std::count(share.begin(), share.end(), '\n')));
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
  std::vector<std::string> outs(streams_.size());
  share(text, key, [&](std::size_t i, std::string_view lines, const Key& own) {
    streams_[i].text(lines, own, outs[i]);
  });
  for (std::size_t i = 1; i < outs.size(); ++i) outs[0] += outs[i];
  return std::move(outs[0]);
}

Buffer Streams::ids(std::string_view text, const Key& key, std::vector<std::int64_t>& ends) {
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
