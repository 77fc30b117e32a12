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

u32 Ids::add(const Word& word, const Tokens& tokens, Buffer* out, Scratch& scratch) const {
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
    length += add(word, scratch.pieces, out);
  };
  tokens.for_each([&](Symbol symbol) { add_one(symbol, false); }, [&](Symbol symbol) { add_one(symbol, true); });
  return length;
}

u32 Sampler::sentence(Key& key, std::size_t number, Buffer* out, Scratch& scratch) const {
  key.sentence = number;
  const u32 self = static_cast<u32>(number);
  const std::size_t begin = corpus_.words_before(number);
  const u32* const words = corpus_.words ? corpus_.words + begin : &self;
  if (out) {
    for (const std::int32_t id : frame_.before) out->push(id);
  }
  const u32 length = sentence(key, words, corpus_.words_before(number + 1) - begin, out, scratch);
  if (out) {
    for (const std::int32_t id : frame_.after) out->push(id);
  }
  return length + static_cast<u32>(frame_.before.size() + frame_.after.size());
}

void Sampler::lengths(Key key, const Selection& which, int threads, std::int32_t* out) const {
  const auto ends = shares(corpus_, which, threads);
  in_threads(ends.size() - 1, [&](std::size_t share) {
    Key own = key;
    Scratch scratch;
    for (std::size_t i = ends[share]; i < ends[share + 1]; ++i) {
      out[i] = static_cast<std::int32_t>(sentence(own, which[i], nullptr, scratch));
    }
  });
}

Buffer Sampler::ids(Key key, const Selection& which, int threads, std::int64_t* ends) const {
  const auto bounds = shares(corpus_, which, threads);
  std::vector<Buffer> buffers(bounds.size() - 1);
  in_threads(buffers.size(), [&](std::size_t share) {
    Key own = key;
    Scratch scratch;
    for (std::size_t i = bounds[share]; i < bounds[share + 1]; ++i) {
      sentence(own, which[i], &buffers[share], scratch);
      ends[i + 1] = static_cast<std::int64_t>(buffers[share].size());
    }
  });
  ends[0] = 0;
  if (buffers.size() == 1) return std::move(buffers[0]);
  std::vector<std::size_t> before{0};
  for (const auto& buffer : buffers) before.push_back(before.back() + buffer.size());
  Buffer all;
  all.reserve(std::max<std::size_t>(1, before.back()));
  in_threads(buffers.size(), [&](std::size_t share) {
    Buffer own = std::move(buffers[share]);  // and released when it is copied
    if (own.size()) std::memcpy(all.data() + before[share], own.data(), own.size() * sizeof(std::int32_t));
    for (std::size_t i = bounds[share]; i < bounds[share + 1]; ++i) {
      ends[i + 1] += static_cast<std::int64_t>(before[share]);
    }
  });
  all.grow(before.back());
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
  std::vector<std::size_t> tables(workers), starts(workers);
  in_threads(workers, [&](std::size_t worker) {
    Tables::Shelf& shelf = shelves[worker];
    Scratch scratch;
    for (std::size_t i = worker; i < often.size(); i += workers) {
      const u32 type = often[i];
      refs_[type] = tables_.add(shelf, *merges_, word(type), dropout_, finest(type), Tables::kLeast, *ids_, scratch);
      tables[worker] += refs_[type] != 0;
    }
  });
  // Of all other words the start is kept, in the order of the text, which is the order in which it will be read.
  in_threads(workers, [&](std::size_t worker) {
    Scratch scratch;
    const std::size_t begin = corpus.types / workers * worker;
    const std::size_t end = worker + 1 == workers ? corpus.types : corpus.types / workers * (worker + 1);
    for (std::size_t type = begin; type < end; ++type) {
      if (refs_[type]) continue;
      refs_[type] = tables_.add_start(shelves[worker], *merges_, word(static_cast<u32>(type)), dropout_, scratch);
      starts[worker] += refs_[type] != 0;
    }
  });
  memory_ = refs_.size() * sizeof(Tables::Ref);
  for (std::size_t i = 0; i < workers; ++i) {
    memory_ += Tables::memory(empty[i], shelves[i]);
    table_count_ += tables[i];
    start_count_ += starts[i];
  }
}

u32 DropoutSampler::draw_word(const Key& key, u64 position, u64 first, u32 type, Buffer* out,
                              Scratch& scratch) const {
  Decoder decoder(key, position, first);
  const Word drawn = word(type);
  if (const u32* const start = tables_.start(refs_[type])) {
    scratch.tokens.run_from(start, *merges_, dropout_, decoder);
    return ids_->add(drawn, scratch.tokens, out, scratch);
  }
  draw(*merges_, drawn, dropout_, &decoder, scratch);
  return ids_->add(drawn, scratch.pieces, out);
}

u32 DropoutSampler::sentence(const Key& key, const u32* words, std::size_t count, Buffer* out,
                             Scratch& scratch) const {
  // In groups, a step at a time for all of them: by the time a table is read, it is in the cache.
  constexpr std::size_t kGroup = 32;
  u64 first[kGroup];
  Tables::Ref refs[kGroup];
  Find finds[kGroup];
  u32 length = 0;
  for (std::size_t begin = 0; begin < count; begin += kGroup) {
    const std::size_t size = std::min(kGroup, count - begin);
    for (std::size_t i = 0; i < size; ++i) refs[i] = refs_[words[begin + i]];
    for (std::size_t i = 0; i < size; i += 4) {
      const Block block = key.block(0, (begin + i) / 4);
      std::memcpy(first + i, block.data(), sizeof block);
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (refs[i]) tables_.prefetch(refs[i], first[i]);
    }
    for (std::size_t i = 0; i < size; ++i) {
      finds[i] = Tables::is_table(refs[i]) ? tables_.find(refs[i], first[i]) : kUnresolved;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const Find find = finds[i];
      if (find == kUnresolved) {
        length += draw_word(key, begin + i, first[i], words[begin + i], out, scratch);
        continue;
      }
      const u32 ids = ids_count(find);
      length += ids;
      if (!out) continue;
      std::int32_t* const to = out->room(kMostIds + 4);
      const u32* const from = tables_.ids(refs[i]) + ids_begin(find);
      std::memcpy(to, from, 16);
      if (ids > 4) std::memcpy(to + 4, from + 4, (ids - 4) * 4);
      out->grow(ids);
    }
  }
  return length;
}

u32 ListSampler::sentence(const Key& key, const u32* words, std::size_t count, Buffer* out, Scratch&) const {
  u32 length = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const u64 begin = outcome_ends_[words[i]], end = outcome_ends_[words[i] + 1];
    const std::size_t outcome = begin + choose(cumulated_.data() + begin, cumulated_.data() + end, key.first(i));
    const u64 from = id_ends_[outcome], to = id_ends_[outcome + 1];
    length += static_cast<u32>(to - from);
    if (!out || from == to) continue;
    std::memcpy(out->room(to - from), ids_.data() + from, (to - from) * 4);
    out->grow(to - from);
  }
  return length;
}

}  // namespace bpe
