#include "sampler.h"

#include <cstring>
#include <numeric>

#include "threads.h"

namespace bpe {

namespace {

// Cuts a selection into shares of about as many words each; too few words are not worth a thread.
std::vector<std::size_t> shares(const Corpus& corpus, const Selection& which, int threads) {
  if (threads <= 1) return {0, which.count};
  std::vector<u64> before(which.count + 1, 0);
  for (std::size_t i = 0; i < which.count; ++i) {
    const std::size_t s = which[i];
    before[i + 1] = before[i] + corpus.words_before(s + 1) - corpus.words_before(s) + 1;
  }
  const u64 all = before.back();
  const std::size_t count = std::max<std::size_t>(1, std::min<u64>(static_cast<u64>(threads), all / 4096));
  std::vector<std::size_t> ends{0};
  for (std::size_t i = 1; i < count; ++i) {
    const auto at = std::lower_bound(before.begin(), before.end(), all / count * i);
    ends.push_back(static_cast<std::size_t>(at - before.begin()));
  }
  ends.push_back(which.count);
  return ends;
}

}  // namespace

Ids::Ids(std::shared_ptr<const Merges> merges, const std::vector<std::pair<std::string, std::int32_t>>& dictionary,
         std::int32_t unknown)
    : merges_(std::move(merges)), unknown_(unknown) {
  const std::string& separator = merges_->separator();
  for (const auto& [piece, id] : dictionary) {
    if (strings_.add(piece) < ids_.size()) continue;  // the first counts
    ids_.push_back(id);
    const auto add_character = [&](std::string_view text, Piece joined) {
      if (const auto character = only_character(text)) characters_.emplace(kForeign | joined | *character, id);
    };
    add_character(piece, 0);
    if (piece.size() > separator.size() &&
        piece.compare(piece.size() - separator.size(), separator.size(), separator) == 0) {
      add_character(std::string_view(piece).substr(0, piece.size() - separator.size()), kJoined);
    }
  }
  for (Piece piece = 0; piece < merges_->known_pieces(); ++piece) {
    known_.push_back(merges_->empty(piece) ? kNoId : look_up({}, piece));
  }
  for (Symbol symbol = 0; symbol < merges_->symbols(); ++symbol) {
    const auto id = [&](bool last) {
      const auto piece = merges_->only_piece(symbol, last);
      return piece && known_[*piece] >= 0 ? static_cast<std::int32_t>(known_[*piece]) : kSeveral;
    };
    of_inner_.push_back(id(false));
    of_last_.push_back(id(true));
  }
}

std::int64_t Ids::look_up(const Word& word, Piece piece) const {
  std::string text;
  merges_->append(word, piece, text);
  const u32 found = strings_.find(text);
  return found == Words::kNone ? unknown_ : ids_[found];
}

u32 Ids::add(const Word& word, const std::vector<Piece>& pieces, Buffer* out) const {
  u32 length = 0;
  for (const Piece piece : pieces) {
    const std::int64_t id = (*this)(word, piece);
    if (id == kNoId) continue;
    ++length;
    if (out) out->push(static_cast<std::int32_t>(id));
  }
  return length;
}

u32 Ids::add(const Tokens& tokens, Buffer* out, Scratch& scratch) const {
  u32 length = 0;
  const auto add_one = [&](Symbol symbol, bool last) {
    const auto& ids = last ? of_last_ : of_inner_;
    if (symbol < ids.size() && ids[symbol] != kSeveral) {
      ++length;
      if (out) out->push(ids[symbol]);
      return;
    }
    scratch.pieces.clear();
    merges_->pieces(symbol, last, scratch.pieces);
    length += add({}, scratch.pieces, out);
  };
  tokens.for_each([&](Symbol symbol) { add_one(symbol, false); }, [&](Symbol symbol) { add_one(symbol, true); });
  return length;
}

void Sampler::lengths(Key key, const Selection& which, int threads, std::int32_t* out) const {
  const auto ends = shares(corpus_, which, threads);
  Drawn drawn;
  drawn.lengths = out;
  in_threads(ends.size() - 1, [&](std::size_t share) { sentences(key, which, ends[share], ends[share + 1], drawn); });
}

Buffer Sampler::ids(Key key, const Selection& which, int threads, std::int64_t* ends) const {
  const auto bounds = shares(corpus_, which, threads);
  std::vector<Buffer> buffers(bounds.size() - 1);
  in_threads(buffers.size(), [&](std::size_t share) {
    sentences(key, which, bounds[share], bounds[share + 1], {nullptr, &buffers[share], ends});
  });
  ends[0] = 0;
  std::vector<std::size_t> before{0};
  for (const auto& buffer : buffers) before.push_back(before.back() + buffer.size());
  Buffer all = std::move(buffers[0]);
  if (buffers.size() == 1) return all;
  all.reserve(std::max<std::size_t>(1, before.back()));
  in_threads(buffers.size() - 1, [&](std::size_t i) {
    const std::size_t share = i + 1;
    Buffer own = std::move(buffers[share]);  // and released when it is copied
    if (own.size()) std::memcpy(all.data() + before[share], own.data(), own.size() * sizeof(std::int32_t));
    for (std::size_t s = bounds[share]; s < bounds[share + 1]; ++s) {
      ends[s + 1] += static_cast<std::int64_t>(before[share]);
    }
  });
  all.grow(before.back() - before[1]);
  return all;
}

DropoutSampler::DropoutSampler(const Corpus& corpus, std::shared_ptr<const Merges> merges,
                               std::shared_ptr<const Ids> ids, Parts parts, Dropout dropout, const u64* counts,
                               std::size_t memory, int threads, Frame frame)
    : Sampler(corpus, std::move(frame)),
      merges_(std::move(merges)),
      ids_(std::move(ids)),
      parts_(std::move(parts)),
      dropout_(std::move(dropout)),
      tables_(memory > corpus.types * sizeof(Tables::Ref) ? memory - corpus.types * sizeof(Tables::Ref) : 0),
      refs_(corpus.types, 0) {
  // A word that recurs gets a table: what it saves grows with the word's count, and so does the care that is
  // taken over it. About kIntervals are made in all, a second's work or two, shared out by the counts. No table is
  // made for what would take many epochs to repay it: a word that occurs less than kOften, or one whose table would
  // leave more than half of all numbers to draw().
  constexpr double kIntervals = 64e6, kFewest = 16, kMost = 16384, kMostADraw = 16;
  constexpr u64 kOften = 2;
  const double drawn = std::accumulate(counts, counts + corpus.types, 1.0);
  const double a_draw = std::min(kIntervals / drawn, kMostADraw);
  const auto finest = [&](u32 type) {
    return 1 / std::clamp(a_draw * static_cast<double>(counts[type]), kFewest, kMost);
  };
  std::vector<u32> often;
  for (u32 type = 0; type < corpus.types; ++type) {
    if (counts[type] >= kOften) often.push_back(type);
  }
  std::stable_sort(often.begin(), often.end(), [&](u32 a, u32 b) { return counts[a] > counts[b]; });
  const std::size_t workers = static_cast<std::size_t>(std::max(1, threads));
  const auto empty = tables_.shelves(workers);
  auto shelves = empty;
  std::vector<std::size_t> tables(workers), charts(workers);
  in_threads(workers, [&](std::size_t worker) {
    Tables::Shelf& shelf = shelves[worker];
    Scratch scratch;
    for (std::size_t i = worker; i < often.size(); i += workers) {
      const u32 type = often[i];
      refs_[type] = tables_.add(shelf, *merges_, word(type), dropout_, finest(type), Tables::kLeast, *ids_, scratch);
      tables[worker] += refs_[type] != 0;
    }
  });
  // Of all other words the chart is kept, in the order of the text, which is the order in which it will be read.
  in_threads(workers, [&](std::size_t worker) {
    Scratch scratch;
    const std::size_t begin = corpus.types / workers * worker;
    const std::size_t end = worker + 1 == workers ? corpus.types : corpus.types / workers * (worker + 1);
    for (std::size_t type = begin; type < end; ++type) {
      if (refs_[type]) continue;
      refs_[type] = tables_.add_chart(shelves[worker], *merges_, word(static_cast<u32>(type)), dropout_, *ids_,
                                      scratch);
      if (refs_[type]) ++(Tables::is_table(refs_[type]) ? tables : charts)[worker];
    }
  });
  memory_ = refs_.size() * sizeof(Tables::Ref);
  for (std::size_t i = 0; i < workers; ++i) {
    memory_ += Tables::memory(empty[i], shelves[i]);
    table_count_ += tables[i];
    chart_count_ += charts[i];
  }
}

u32 DropoutSampler::draw_word(const Key& key, u64 position, u64 first, u32 type, Tables::Ref ref, Buffer* out,
                              Scratch& scratch) const {
  Decoder decoder(key, position, first);
  if (const u32* const chart = tables_.chart(ref)) {
    const u32 length = Chart::draw(chart, dropout_, decoder, out ? out->room(Chart::kMostIds) : nullptr);
    if (out) out->grow(length);
    return length;
  }
  const Word drawn = word(type);
  draw(*merges_, drawn, dropout_, &decoder, scratch);
  return ids_->add(drawn, scratch.pieces, out);
}

void DropoutSampler::sentences(Key key, const Selection& which, std::size_t begin, std::size_t end,
                          const Drawn& out) const {
  // Some sentences at a time, and a step at a time for all of their words: by the time a table is read, it is in the
  // cache.
  constexpr std::size_t kWords = 128;
  struct Draw {
    u64 first;
    u32 type;
    Tables::Ref ref;
    u32 find;  // or, for a while, a bucket
  };
  std::vector<Draw> draws;
  std::vector<u32> left;  // numbers in `draws`
  Scratch scratch;
  for (std::size_t from = begin, to = begin; from < end; from = to) {
    std::size_t size = 0;
    for (; to < end && size < kWords; ++to) {
      key.sentence = which[to];
      const std::size_t first_word = corpus().words_before(key.sentence);
      const std::size_t count = corpus().words_before(key.sentence + 1) - first_word;
      if (draws.size() < size + count + 3) {
        draws.resize(2 * (size + count + 3));
        left.resize(draws.size());
      }
      for (std::size_t i = 0; i < count; i += 4) {
        const Block block = key.block(0, i / 4);
        for (std::size_t j = 0; j < 4; ++j) draws[size + i + j].first = block[j];
      }
      for (std::size_t i = 0; i < count; ++i) {
        Draw& draw = draws[size++];
        draw.type = corpus().word(first_word + i);
        draw.ref = refs_[draw.type];
        tables_.prefetch(draw.ref);
      }
    }
    std::size_t unlikely = 0, in_tables = 0;
    for (std::size_t i = 0; i < size; ++i) {
      draws[i].find = tables_.find_likely(draws[i].ref, draws[i].first);
      left[unlikely] = static_cast<u32>(i);
      unlikely += draws[i].find == kUnresolved;
    }
    for (std::size_t i = 0; i < unlikely; ++i) {
      const Draw& draw = draws[left[i]];
      tables_.prefetch_rest(draw.ref, draw.first);
      left[in_tables] = left[i];
      in_tables += Tables::is_table(draw.ref);
    }
    for (std::size_t i = 0; i < in_tables; ++i) {
      Draw& draw = draws[left[i]];
      draw.find = tables_.bucket(draw.ref, draw.first);
    }
    for (std::size_t i = 0; i < in_tables; ++i) {
      Draw& draw = draws[left[i]];
      draw.find = tables_.find_in(draw.ref, draw.first, draw.find);
    }
    const Draw* draw = draws.data();
    for (; from < to; ++from) {
      key.sentence = which[from];
      out.add(frame().before);
      u32 length = frame().size();
      const std::size_t count = corpus().words_before(key.sentence + 1) - corpus().words_before(key.sentence);
      for (std::size_t i = 0; i < count; ++i, ++draw) {
        if (draw->find == kUnresolved) {
          length += draw_word(key, i, draw->first, draw->type, draw->ref, out.ids, scratch);
          continue;
        }
        const u32 ids = ids_count(draw->find);
        length += ids;
        if (!out.ids) continue;
        std::int32_t* const copy = out.ids->room(kMostIds + kCopied);
        const u32* const kept = tables_.ids(draw->ref) + ids_begin(draw->find);
        std::memcpy(copy, kept, kCopied * 4);
        if (ids > kCopied) std::memcpy(copy + kCopied, kept + kCopied, (ids - kCopied) * 4);
        out.ids->grow(ids);
      }
      out.add(frame().after);
      out.end(from, length);
    }
  }
}

void ListSampler::sentences(Key key, const Selection& which, std::size_t begin, std::size_t end,
                            const Drawn& out) const {
  for (std::size_t s = begin; s < end; ++s) {
    key.sentence = which[s];
    const std::size_t first_word = corpus().words_before(key.sentence);
    const std::size_t count = corpus().words_before(key.sentence + 1) - first_word;
    out.add(frame().before);
    u32 length = frame().size();
    for (std::size_t i = 0; i < count; ++i) {
      const u32 type = corpus().word(first_word + i);
      const u64 first = outcome_ends_[type], last = outcome_ends_[type + 1];
      const std::size_t outcome = first + choose(cumulated_.data() + first, cumulated_.data() + last, key.first(i));
      const u64 from = id_ends_[outcome], to = id_ends_[outcome + 1];
      length += static_cast<u32>(to - from);
      if (!out.ids || from == to) continue;
      std::memcpy(out.ids->room(to - from), ids_.data() + from, (to - from) * 4);
      out.ids->grow(to - from);
    }
    out.add(frame().after);
    out.end(s, length);
  }
}

}  // namespace bpe
