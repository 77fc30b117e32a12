#include "probability.h"

#include <map>

namespace bpe {

namespace {

constexpr double kExact = 1e-13;  // of the probability: what may be missing
constexpr std::size_t kFewStates = 256, kMoreStates = 8;  // a walk begins with so few, and then takes so many times more
constexpr double kClear = 8;  // so many times what is let go is the least of the most probable

// The tokens that a part of a word may have: all that merges can make of its characters.
class Spans {
 public:
  Spans(const Merges& merges, std::string_view text) : merges_(merges) {
    std::vector<Symbol> start;
    merges.start(text, start);
    size_ = start.size();
    if (size_ > kMost) throw TooManyStates("more than " + std::to_string(kMost) + " characters");
    symbols_.assign(size_ * (size_ + 1), kForeign);
    made_.assign(symbols_.size(), 0);
    for (std::size_t i = 0; i < size_; ++i) make(i, i + 1, start[i]);
    for (std::size_t length = 2; length <= size_; ++length) {
      for (std::size_t begin = 0; begin + length <= size_; ++begin) {
        for_each_split(begin, begin + length, [&](std::size_t, Rank rank) {
          make(begin, begin + length, merges.result(rank));
        });
      }
    }
  }
  std::size_t size() const { return size_; }
  bool made(std::size_t begin, std::size_t end) const { return made_[at(begin, end)]; }
  Symbol symbol(std::size_t begin, std::size_t end) const { return symbols_[at(begin, end)]; }

  // Calls split(middle, rank) for each merge that makes [begin, end).
  template <class F>
  void for_each_split(std::size_t begin, std::size_t end, F&& split) const {
    for (std::size_t middle = begin + 1; middle < end; ++middle) {
      if (!made(begin, middle) || !made(middle, end)) continue;
      const Rank rank = merges_.rank(symbol(begin, middle), symbol(middle, end));
      if (rank != kNoMerge) split(middle, rank);
    }
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
          for_each_split(begin, begin + length, [&](std::size_t middle, Rank) {
            marks[at(begin, middle)] = marks[at(middle, begin + length)] = 1;
          });
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

  const Merges& merges_;
  std::size_t size_;
  std::vector<Symbol> symbols_;
  std::vector<u8> made_;
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

// Equal states become one.
void unite(std::vector<State>& states) {
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.gone < b.gone; });
  std::size_t size = 0;
  for (const State& state : states) {
    if (state.probability == 0) continue;
    if (size && states[size - 1].gone == state.gone) {
      states[size - 1].probability += state.probability;
    } else {
      states[size++] = state;
    }
  }
  states.resize(size);
}

// Algorithm 1 for one part: the states with no merge done, with one, with two, and so on, `width` of each at most.
// allowed(span) says whether a token is to be made; done(tokens, probability) is called for each state, with the
// probability that the part stays so. Returns the probability of the states that were let go.
template <class Allowed, class Done>
double walk(const Merges& merges, const Spans& spans, double p, std::size_t width, Allowed&& allowed, Done&& done) {
  std::vector<State> layer{{0, 1.0}}, next;
  std::vector<std::size_t> begins;
  std::vector<Symbol> tokens;
  std::vector<std::pair<Rank, std::size_t>> candidates;
  double lost = 0;
  while (!layer.empty()) {
    lost += keep(layer, width);
    next.clear();
    for (const State& state : layer) {
      begins.assign(1, 0);
      for (std::size_t i = 1; i < spans.size(); ++i) {
        if (!(state.gone >> (i - 1) & 1)) begins.push_back(i);
      }
      begins.push_back(spans.size());
      tokens.clear();
      candidates.clear();
      for (std::size_t t = 0; t + 1 < begins.size(); ++t) {
        tokens.push_back(spans.symbol(begins[t], begins[t + 1]));
        const Rank rank = t ? merges.rank(tokens[t - 1], tokens[t]) : kNoMerge;
        if (rank != kNoMerge) candidates.emplace_back(rank, t - 1);
      }
      std::sort(candidates.begin(), candidates.end());
      double left = state.probability;  // that all candidates so far were dropped
      for (const auto& [rank, t] : candidates) {
        if (allowed(spans.at(begins[t], begins[t + 2]))) {
          next.push_back({state.gone | u128{1} << (begins[t + 1] - 1), left * (1 - p)});
        }
        left *= p;
      }
      done(tokens, left);
    }
    unite(next);
    layer.swap(next);
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

  void search(std::size_t begin, std::size_t piece) {
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
};

// The probability of one segmentation of a part into tokens.
Bounds of_tokens(const Text& text, double p, const std::vector<std::size_t>& ends, std::size_t most) {
  const std::vector<u8> useful = text.spans.useful(ends);
  double stays = 1;  // that all candidates are dropped, once the tokens are there
  for (std::size_t t = 1; t < ends.size(); ++t) {
    const Symbol left = text.spans.symbol(t > 1 ? ends[t - 2] : 0, ends[t - 1]);
    if (text.merges.rank(left, text.spans.symbol(ends[t - 1], ends[t])) != kNoMerge) stays *= p;
  }
  for (std::size_t width = std::min(kFewStates, most);; width = std::min(width * kMoreStates, most)) {
    double found = 0;
    const double lost = stays * walk(
        text.merges, text.spans, p, width, [&](std::size_t span) { return useful[span] != 0; },
        [&](const std::vector<Symbol>& tokens, double probability) {
          // Only they have so few tokens, since no useful token goes beyond one of them.
          if (tokens.size() == ends.size()) found = probability;
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

// The most probable segmentations of a part. What the walk has let go bounds the probability of those that it has not
// found, and what may be missing of those that it has.
Weighted most_probable(const Text& text, double p, std::size_t count, std::size_t most) {
  for (std::size_t width = std::min(kFewStates, most);; width = std::min(width * kMoreStates, most)) {
    std::map<std::vector<Piece>, double> found;
    std::vector<Piece> pieces;
    const double lost = walk(
        text.merges, text.spans, p, width, [](std::size_t) { return true; },
        [&](const std::vector<Symbol>& tokens, double probability) {
          pieces.clear();
          text.merges.pieces(tokens.data(), tokens.size(), text.last, pieces);
          found[pieces] += probability;
        });
    Weighted outcomes;
    for (auto& [listed, probability] : found) {
      if (probability > 0) outcomes.push_back({listed, probability});
    }
    sort(outcomes);
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
          add(exact, {1, 1}, of_tokens(text, p, target.ends, most));
        }
        if (!(exact.most <= exact.least * (1 + 2 * kExact))) throw_too_many(most);
        outcome.probability = exact.least;
      }
      sort(outcomes);
    }
    outcomes.resize(std::min(outcomes.size(), count));
    return outcomes;
  }
}

std::vector<Piece> only(const Merges& merges, const Word& word, double p) {
  Scratch scratch;
  Decoder decoder({}, 0, 0);
  draw(merges, word, Dropout(p), &decoder, scratch);
  return scratch.pieces;
}

Text text_of(const Merges& merges, const Word& word, std::size_t part) {
  return {merges, word, Spans(merges, part_text(word, part)), part + 1 == part_count(word)};
}

}  // namespace

Bounds probability(const Merges& merges, const Word& word, double p, const std::vector<std::string>& pieces,
                   std::size_t most) {
  if (p <= 0 || p >= 1) {
    const double is_it = spell(merges, word, only(merges, word, p)) == pieces;
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
        add(next[first + target.pieces], before, of_tokens(text, p, target.ends, most));
      }
    }
    reached.swap(next);
  }
  const auto all = reached.find(pieces.size());
  return all == reached.end() ? Bounds{0, 0} : all->second;
}

std::vector<Outcome> most_probable(const Merges& merges, const Word& word, double p, std::size_t count,
                                   std::size_t most) {
  if (p <= 0 || p >= 1) return {{only(merges, word, p), 1.0}};
  Weighted all{{{}, 1.0}};
  for (std::size_t part = 0; part < part_count(word); ++part) {
    const auto piece = whole(word, part);
    const Weighted of_part =
        piece ? Weighted{{{*piece}, 1.0}} : most_probable(text_of(merges, word, part), p, count, most);
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
