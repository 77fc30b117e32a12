#include "probability.h"

#include <map>

namespace bpe {

namespace {

constexpr double kExact = 1e-13;  // of the probability: what may be missing
// A walk begins with so few states, and then takes so many times more.
constexpr std::size_t kFewStates = 256, kMoreStates = 8;
constexpr double kClear = 8;  // so many times what is let go is the least of the most probable

// The tokens that a part of a word may have: all that merges can make of its characters.
class Spans {
 public:
  Spans(const Merges& merges, std::string_view text) {
    std::vector<Symbol> start;
    merges.start(text, start);
    size_ = start.size();
    if (size_ > kMost) throw TooManyStates("more than " + std::to_string(kMost) + " characters");
    symbols_.assign(size_ * (size_ + 1), kForeign);
    made_.assign(symbols_.size(), 0);
    ranks_.assign(size_ * symbols_.size(), kNoMerge);
    for (std::size_t i = 0; i < size_; ++i) make(i, i + 1, start[i]);
    for (std::size_t length = 2; length <= size_; ++length) {
      for (std::size_t begin = 0, end = length; end <= size_; ++begin, ++end) {
        for (std::size_t middle = begin + 1; middle < end; ++middle) {
          if (!made(begin, middle) || !made(middle, end)) continue;
          const Rank rank = merges.rank(symbol(begin, middle), symbol(middle, end));
          if (rank == kNoMerge) continue;
          ranks_[middle * symbols_.size() + at(begin, end)] = rank;
          make(begin, end, merges.result(rank));
        }
      }
    }
  }
  std::size_t size() const { return size_; }
  bool made(std::size_t begin, std::size_t end) const { return made_[at(begin, end)]; }
  Symbol symbol(std::size_t begin, std::size_t end) const { return symbols_[at(begin, end)]; }

  // Of the merge of [begin, middle) and [middle, end).
  Rank rank(std::size_t begin, std::size_t middle, std::size_t end) const {
    return ranks_[middle * symbols_.size() + at(begin, end)];
  }
  // By span, whether it can become part of one of the tokens that end at `ends`.
  std::vector<u8> useful(const std::vector<std::size_t>& ends) const {
    std::vector<u8> marks(made_.size());
    std::size_t from = 0;
    for (const std::size_t to : ends) {
      marks[at(from, to)] = 1;
      for (std::size_t length = to - from; length > 1; --length) {
        for (std::size_t begin = from; begin + length <= to; ++begin) {
          if (!marks[at(begin, begin + length)]) continue;
          for (std::size_t middle = begin + 1; middle < begin + length; ++middle) {
            if (rank(begin, middle, begin + length) == kNoMerge) continue;
            marks[at(begin, middle)] = marks[at(middle, begin + length)] = 1;
          }
        }
      }
      from = to;
    }
    return marks;
  }
  std::size_t at(std::size_t begin, std::size_t end) const { return begin * (size_ + 1) + end; }

 private:
  static constexpr std::size_t kMost = 128;  // a state is a bit for each boundary

  void make(std::size_t begin, std::size_t end, Symbol symbol) {
    symbols_[at(begin, end)] = symbol;
    made_[at(begin, end)] = 1;
  }

  std::size_t size_;
  std::vector<Symbol> symbols_;
  std::vector<u8> made_;
  std::vector<Rank> ranks_;
};

struct State {
  u128 gone;  // the boundaries, a bit each
  double probability;
};

// Keeps the most probable states, and returns the probability of the others.
double keep(std::vector<State>& states, std::size_t width) {
  if (states.size() <= width) return 0;
  std::nth_element(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(width), states.end(),
                   [](const State& a, const State& b) { return a.probability > b.probability; });
  double lost = 0;
  for (std::size_t i = width; i < states.size(); ++i) lost += states[i].probability;
  states.resize(width);
  return lost;
}

// States with so many merges done, each once.
class Layer {
 public:
  void add(u128 gone, double probability) {
    if (probability == 0) return;
    if ((states.size() + 1) * 2 > slots_.size()) grow();
    u32& slot = slots_[find(gone)];
    if (slot == kNone) {
      slot = static_cast<u32>(states.size());
      states.push_back({gone, probability});
    } else {
      states[slot].probability += probability;
    }
  }
  void clear() {
    states.clear();
    std::fill(slots_.begin(), slots_.end(), kNone);
  }
  std::vector<State> states;  // in the order in which they came

 private:
  static constexpr u32 kNone = 0xFFFFFFFF;

  std::size_t find(u128 gone) const {
    const std::size_t mask = slots_.size() - 1;
    const u64 low = static_cast<u64>(gone), high = static_cast<u64>(gone >> 64);
    const u64 mixed = (low ^ high * 0xD6E8FEB86659FD93ULL) * 0x9E3779B97F4A7C15ULL;
    std::size_t at = (mixed ^ mixed >> 32) & mask;
    while (slots_[at] != kNone && states[slots_[at]].gone != gone) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(slots_.size() * 4, kNone);
    for (u32 i = 0; i < states.size(); ++i) slots_[find(states[i].gone)] = i;
  }

  std::vector<u32> slots_ = std::vector<u32>(256, kNone);
};

// Where the tokens of a state begin, and where the last one ends.
void find_begins(u128 gone, std::size_t size, std::vector<std::size_t>& begins) {
  begins.assign(1, 0);
  u128 boundaries = ~gone;
  for (std::size_t done = 0; done + 1 < size; done += 64, boundaries >>= 64) {
    for (u64 some = static_cast<u64>(boundaries); some; some &= some - 1) {
      const std::size_t at = done + static_cast<std::size_t>(__builtin_ctzll(some)) + 1;
      if (at >= size) break;
      begins.push_back(at);
    }
  }
  begins.push_back(size);
}

// Algorithm 1 for one part: the states with no merge done, with one, with two, and so on, `width` of each at most.
// allowed(span) says whether a token is to be made; done(state, tokens) is called for each state, with the probability
// that the part stays so, and the number of its tokens. Returns the probability of the states that were let go.
template <class Allowed, class Done>
double walk(const Spans& spans, const Dropout& dropout, std::size_t width, Allowed&& allowed, Done&& done) {
  Layer layer, next;
  layer.add(0, 1.0);
  std::vector<std::size_t> begins;
  std::vector<std::pair<Rank, std::size_t>> candidates;
  double lost = 0;
  while (!layer.states.empty()) {
    lost += keep(layer.states, width);
    next.clear();
    for (const State& state : layer.states) {
      find_begins(state.gone, spans.size(), begins);
      candidates.clear();
      for (std::size_t t = 0; t + 2 < begins.size(); ++t) {
        const Rank rank = spans.rank(begins[t], begins[t + 1], begins[t + 2]);
        if (rank != kNoMerge) candidates.emplace_back(rank, t);
      }
      std::sort(candidates.begin(), candidates.end());
      double left = state.probability;  // that all candidates so far were dropped
      for (const auto& [rank, t] : candidates) {
        const double p = dropout.p(static_cast<std::size_t>(rank));
        if (allowed(spans.at(begins[t], begins[t + 2]))) {
          next.add(state.gone | u128{1} << (begins[t + 1] - 1), left * (1 - p));
        }
        left *= p;
      }
      done(State{state.gone, left}, begins.size() - 1);
    }
    std::swap(layer, next);
  }
  return lost;
}

std::vector<std::string> spell(const Merges& merges, const Word& word, const std::vector<Piece>& pieces) {
  std::vector<std::string> strings(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) merges.append(word, pieces[i], strings[i]);
  return strings;
}

// One part of a word.
struct Text {
  const Merges& merges;
  const Word& word;
  Spans spans;
  bool last;

  std::vector<std::string> strings(const std::vector<Symbol>& tokens) const {
    std::vector<Piece> pieces;
    merges.pieces(tokens.data(), tokens.size(), last, pieces);
    return spell(merges, word, pieces);
  }
};

// Where the tokens of a part end; and how many pieces they are.
struct Target {
  std::vector<std::size_t> ends;
  std::size_t pieces;
};

bool continues(const std::vector<std::string>& wanted, std::size_t from, const std::vector<std::string>& found) {
  return wanted.size() - from >= found.size() &&
         std::equal(found.begin(), found.end(), wanted.begin() + static_cast<std::ptrdiff_t>(from));
}

// Finds all tokens of the part that are spelled as the wanted pieces are, from number `first` on. There may be several:
// a vocabulary splits tokens, and the "</w>" of codes of version 0.1 is not shown.
class Targets {
 public:
  Targets(const Text& text, const std::vector<std::string>& wanted, std::size_t first)
      : text_(text), wanted_(wanted), first_(first) {
    search(0, first);
  }
  std::vector<Target> found;

 private:
  static constexpr std::size_t kMost = 1 << 12;
  static constexpr std::size_t kSteps = 1 << 20;  // with those that lead nowhere

  void search(std::size_t begin, std::size_t piece) {
    if (++steps_ > kSteps) throw TooManyStates("more than " + std::to_string(kSteps) + " steps to see how it is spelled");
    const std::size_t size = text_.spans.size();
    for (std::size_t end = begin + 1; end <= size; ++end) {
      if (!text_.spans.made(begin, end)) continue;
      tokens_.push_back(text_.spans.symbol(begin, end));
      ends_.push_back(end);
      if (end == size) {
        const auto strings = text_.strings(tokens_);
        if (continues(wanted_, first_, strings)) {
          if (found.size() == kMost) throw TooManyStates("more than " + std::to_string(kMost) + " ways to spell it");
          found.push_back({ends_, strings.size()});
        }
      } else if (end + 1 == size && !text_.merges.by_token()) {
        search(end, piece);  // it may be the last that is seen: left to the end
      } else {
        std::vector<Piece> pieces;
        text_.merges.pieces(tokens_.back(), false, pieces);
        const auto strings = spell(text_.merges, text_.word, pieces);
        if (continues(wanted_, piece, strings)) search(end, piece + strings.size());
      }
      tokens_.pop_back();
      ends_.pop_back();
    }
  }

  const Text& text_;
  const std::vector<std::string>& wanted_;
  const std::size_t first_;
  std::vector<Symbol> tokens_;
  std::vector<std::size_t> ends_;
  std::size_t steps_ = 0;
};

// The probability of one segmentation of a part into tokens.
Bounds of_tokens(const Text& text, const Dropout& dropout, const std::vector<std::size_t>& ends, std::size_t most) {
  const std::vector<u8> useful = text.spans.useful(ends);
  double stays = 1;  // that all candidates are dropped, once the tokens are there
  for (std::size_t t = 1; t < ends.size(); ++t) {
    const Rank rank = text.spans.rank(t > 1 ? ends[t - 2] : 0, ends[t - 1], ends[t]);
    if (rank != kNoMerge) stays *= dropout.p(static_cast<std::size_t>(rank));
  }
  for (std::size_t width = std::min(kFewStates, most);; width = std::min(width * kMoreStates, most)) {
    double found = 0;
    const double lost = stays * walk(
        text.spans, dropout, width, [&](std::size_t span) { return useful[span] != 0; },
        [&](const State& state, std::size_t tokens) {
          // Only the wanted are so few, since no useful token goes beyond one of them.
          if (tokens == ends.size()) found = state.probability;
        });
    if (lost <= kExact * found || width == most) return {found, std::min(1.0, found + lost)};
  }
}

void add(Bounds& sum, const Bounds& before, const Bounds& one) {
  sum.least += before.least * one.least;
  sum.most += before.most * one.most;
}

using Weighted = std::vector<Outcome>;

[[noreturn]] void throw_too_many(std::size_t most) {
  throw TooManyStates("more than " + std::to_string(most) + " states at a time");
}

// The most probable first; of equals, the first by its pieces.
void sort(Weighted& outcomes) {
  std::sort(outcomes.begin(), outcomes.end(), [](const Outcome& a, const Outcome& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.pieces < b.pieces;
  });
}

// Whether no two segmentations into tokens are spelled alike.
bool is_spelled_by_token(const Text& text) {
  const std::size_t size = text.spans.size();
  if (!text.merges.by_token()) return false;
  for (std::size_t begin = 0; begin < size; ++begin) {
    for (std::size_t end = begin + 1; end <= size; ++end) {
      const Symbol symbol = text.spans.symbol(begin, end);
      if (!text.spans.made(begin, end) || symbol & kForeign) continue;
      if (!text.merges.only_piece(symbol, end == size)) return false;
    }
  }
  return true;
}

std::vector<Piece> pieces_of(const Text& text, u128 gone) {
  std::vector<std::size_t> begins;
  find_begins(gone, text.spans.size(), begins);
  std::vector<Symbol> tokens;
  for (std::size_t t = 0; t + 1 < begins.size(); ++t) tokens.push_back(text.spans.symbol(begins[t], begins[t + 1]));
  std::vector<Piece> pieces;
  text.merges.pieces(tokens.data(), tokens.size(), text.last, pieces);
  return pieces;
}

// What of the states that were found may be among the most probable, if so much is missing.
Weighted spelled(const Text& text, std::vector<State>& states, std::size_t count, double lost) {
  if (states.size() > count && is_spelled_by_token(text)) {
    const auto last = states.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(states.begin(), last, states.end(),
                     [](const State& a, const State& b) { return a.probability > b.probability; });
    const double least = last->probability - lost;
    const auto is_less = [&](const State& one) { return one.probability < least; };
    states.erase(std::remove_if(states.begin(), states.end(), is_less), states.end());
  }
  std::map<std::vector<Piece>, double> found;
  for (const State& state : states) found[pieces_of(text, state.gone)] += state.probability;
  Weighted outcomes;
  for (const auto& [pieces, probability] : found) outcomes.push_back({pieces, probability});
  sort(outcomes);
  return outcomes;
}

// The most probable segmentations of a part. What the walk has let go bounds the probability of those that it has not
// found, and what may be missing of those that it has.
Weighted most_probable(const Text& text, const Dropout& dropout, std::size_t count, std::size_t most) {
  for (std::size_t width = std::min(kFewStates, most);; width = std::min(width * kMoreStates, most)) {
    std::vector<State> states;
    const double lost = walk(
        text.spans, dropout, width, [](std::size_t) { return true; },
        [&](const State& state, std::size_t) {
          if (state.probability > 0) states.push_back(state);
        });
    Weighted outcomes = spelled(text, states, count, lost);
    const double least = outcomes.size() < count ? 0 : outcomes[count - 1].probability;
    if (lost > least / kClear) {
      if (width == most) throw_too_many(most);
      continue;
    }
    if (lost > kExact * least) {
      while (outcomes.back().probability + lost < least) outcomes.pop_back();
      for (Outcome& outcome : outcomes) {
        Bounds exact{0, 0};
        for (const Target& target : Targets(text, spell(text.merges, text.word, outcome.pieces), 0).found) {
          add(exact, {1, 1}, of_tokens(text, dropout, target.ends, most));
        }
        if (exact.most > exact.least * (1 + 2 * kExact)) throw_too_many(most);
        outcome.probability = exact.least;
      }
      sort(outcomes);
    }
    outcomes.resize(std::min(outcomes.size(), count));
    return outcomes;
  }
}

// The only segmentation, where nothing is left to chance.
std::vector<Piece> only(const Merges& merges, const Word& word, const Dropout& dropout) {
  Scratch scratch;
  Decoder decoder({}, 0, 0);
  draw(merges, word, dropout, &decoder, scratch);
  return scratch.pieces;
}

Text text_of(const Merges& merges, const Word& word, std::size_t part) {
  return {merges, word, Spans(merges, part_text(word, part)), part + 1 == part_count(word)};
}

}  // namespace

Bounds probability(const Merges& merges, const Word& word, const Dropout& dropout,
                   const std::vector<std::string>& pieces, std::size_t most) {
  if (dropout.never() || dropout.always()) {
    const double is_it = spell(merges, word, only(merges, word, dropout)) == pieces;
    return {is_it, is_it};
  }
  std::map<std::size_t, Bounds> reached{{0, {1, 1}}};  // by the number of pieces that the parts so far are
  for (std::size_t part = 0; part < part_count(word); ++part) {
    std::map<std::size_t, Bounds> next;
    for (const auto& [first, before] : reached) {
      if (const auto piece = whole(word, part)) {
        if (continues(pieces, first, spell(merges, word, {*piece}))) add(next[first + 1], before, {1, 1});
        continue;
      }
      const Text text = text_of(merges, word, part);
      for (const Target& target : Targets(text, pieces, first).found) {
        add(next[first + target.pieces], before, of_tokens(text, dropout, target.ends, most));
      }
    }
    reached.swap(next);
  }
  const auto all = reached.find(pieces.size());
  return all == reached.end() ? Bounds{0, 0} : all->second;
}

std::vector<Outcome> most_probable(const Merges& merges, const Word& word, const Dropout& dropout, std::size_t count,
                                   std::size_t most) {
  if (dropout.never() || dropout.always()) return {{only(merges, word, dropout), 1.0}};
  Weighted all{{{}, 1.0}};
  for (std::size_t part = 0; part < part_count(word); ++part) {
    const auto piece = whole(word, part);
    const Weighted of_part =
        piece ? Weighted{{{*piece}, 1.0}} : most_probable(text_of(merges, word, part), dropout, count, most);
    Weighted product;
    for (const Outcome& before : all) {
      for (const Outcome& after : of_part) {
        product.push_back({before.pieces, before.probability * after.probability});
        auto& pieces = product.back().pieces;
        pieces.insert(pieces.end(), after.pieces.begin(), after.pieces.end());
      }
    }
    sort(product);
    product.resize(std::min(product.size(), count));
    all.swap(product);
  }
  return all;
}

}  // namespace bpe
