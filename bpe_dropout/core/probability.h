// How probable one segmentation of a word is, and which are the most probable, without listing all of them.
//
// Each step of Algorithm 1 is weighted by p for every candidate of higher priority, anywhere in the word. So the pieces
// of a segmentation are not independent, not even where no merge joins them: while one is being made, all others have
// further chances. The sum over the orders of the merges does not fall apart into sums for each piece, its states are
// all combinations of the pieces' states, and no way is known here that is polynomial in the length of the word.
//
// But few states matter. On the way to one segmentation, only tokens that can become part of one of its pieces are ever
// made; and of these states, most have next to no probability. So the walk keeps the most probable states of each
// length, adds up the probability of those that it lets go, and thus knows how wrong it may be. If none was let go,
// or none that matters, the result is exact; otherwise the walk is made again with more states, up to a bound.
#pragma once

#include "draw.h"

namespace bpe {

struct Bounds {
  double least, most;
};

// The probability of `pieces`, each with its separator, as a segmentation of `word`. The bounds differ by no more than
// rounding does, unless that needs more than `most` states at a time.
Bounds probability(const Merges& merges, const Word& word, const Dropout& dropout,
                   const std::vector<std::string>& pieces, std::size_t most);

// The `count` most probable segmentations, the most probable first, with their probabilities; all, if there are fewer.
// Throws TooManyStates if that cannot be told with `most` states at a time.
std::vector<Outcome> most_probable(const Merges& merges, const Word& word, const Dropout& dropout, std::size_t count,
                                   std::size_t most);

}  // namespace bpe
