#include "pairs.h"

#include <stdexcept>

namespace bpe {

namespace {

// Below anything that matters. Python's numbers do not overflow, and what is put aside below 0 doubles each time.
constexpr i64 kLowest = -(i64{1} << 61);

}  // namespace

Symbol Spellings::add(std::string_view text) {
  const Symbol symbol = strings_.add(text);
  if (symbol < prefixes_.size()) return symbol;
  u64 prefix = 0;
  for (std::size_t i = 0; i < 8; ++i) prefix = prefix << 8 | (i < text.size() ? static_cast<u8>(text[i]) : 0);
  prefixes_.push_back(prefix);
  has_space_.push_back(holds_space(text));
  constexpr std::string_view kEnd = "</w>";
  if (text.size() > kEnd.size() && text.substr(text.size() - kEnd.size()) == kEnd) text.remove_suffix(kEnd.size());
  lengths_.push_back(static_cast<u32>(count_characters(text)));
  return symbol;
}

void Table64::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.value != kNone) slots_[locate(static_cast<u64>(slot.high) << 32 | slot.low)] = slot;
  }
}

Pairs::Number Pairs::add(Symbol left, Symbol right) {
  u32& number = numbers_[key(left, right)];
  if (number != kNone) return number;
  if (size_ >= kNone) throw std::length_error("over 4 billion pairs of symbols");
  number = static_cast<Number>(size_++);
  if ((number & kInChunk) == 0) pairs_.push_back(std::make_unique<Pair[]>(kInChunk + 1));
  Pair& pair = (*this)[number];
  pair.left = left;
  pair.right = right;
  return number;
}

bool Pairs::less(const Entry& a, const Entry& b) {
  if (a.count != b.count) return a.count < b.count;
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const Pair &one = (*this)[a.number], &other = (*this)[b.number];
  return one.left != other.left ? spellings_.less(one.left, other.left) : spellings_.less(one.right, other.right);
}

void Pairs::push(Number number) {
  heap_.push_back(entry(number, (*this)[number].count));
  std::push_heap(heap_.begin(), heap_.end(), [this](const Entry& a, const Entry& b) { return less(a, b); });
}

void Pairs::change(Number number, i64 by) {
  Pair& pair = (*this)[number];
  if (!pair.counted) {
    pair.counted = true;
    counted_.push_back(number);
  } else if (by <= 0) {
    pair.count += by;
    return;
  }
  pair.count += by;
  if (!pair.changed) {
    pair.changed = true;
    changed_.push_back(number);
  }
}

void Pairs::start() {
  counted_.clear();
  changed_.clear();
  i64 most = 0;
  for (Number number = 0; number < size_; ++number) {
    Pair& pair = (*this)[number];
    pair.rest = pair.count;
    pair.counted = true;
    pair.changed = false;
    counted_.push_back(number);
    most = number ? std::max(most, pair.count) : pair.count;
  }
  threshold_ = static_cast<double>(most) / 10;
}

Pairs::Number Pairs::best(u64 merges_done) {
  Number best = kNone;
  if (merges_done == 0) {  // the only time that what is below the threshold may be the best
    for (const Number number : counted_) {
      const Pair& pair = (*this)[number];
      if (!is_rare(pair.count)) push(number);
      if (best == kNone || less(entry(best, (*this)[best].count), entry(number, pair.count))) best = number;
    }
    return best;
  }
  best = from_heap();
  if (best != kNone) return best;
  put_rare_aside();
  return bring_back(merges_done);
}

Pairs::Number Pairs::from_heap() {
  const auto order = [this](const Entry& a, const Entry& b) { return less(a, b); };
  while (!heap_.empty()) {
    const Entry top = heap_.front();
    const Pair& pair = (*this)[top.number];
    if (pair.counted && pair.count == top.count && !is_rare(top.count)) return top.number;
    std::pop_heap(heap_.begin(), heap_.end(), order);
    heap_.pop_back();
    if (pair.counted && pair.count < top.count && !is_rare(pair.count)) push(top.number);
  }
  return kNone;
}

void Pairs::put_rare_aside() {
  std::size_t kept = 0;
  for (const Number number : counted_) {
    Pair& pair = (*this)[number];
    if (!is_rare(pair.count)) {
      counted_[kept++] = number;
      continue;
    }
    pair.counted = false;
    pair.rest = pair.count < 0 ? std::max(kLowest, pair.rest + pair.count) : pair.count;
    pair.count = 0;
  }
  counted_.resize(kept);
}

Pairs::Number Pairs::bring_back(u64 merges_done) {
  if (size_ == 0) return kNone;
  Number best = 0;
  for (Number number = 1; number < size_; ++number) {
    const i64 most = (*this)[best].rest, rest = (*this)[number].rest;
    if (rest < most) continue;
    if (rest > most || less(entry(best, most), entry(number, rest))) best = number;
  }
  const double done = static_cast<double>(merges_done);
  threshold_ = static_cast<double>((*this)[best].rest) * done / (done + 10000.0);
  counted_.clear();
  heap_.clear();
  for (Number number = 0; number < size_; ++number) {
    Pair& pair = (*this)[number];
    pair.counted = !is_rare(pair.rest);
    pair.count = pair.counted ? pair.rest : 0;
    if (pair.counted) {
      counted_.push_back(number);
      heap_.push_back(entry(number, pair.count));
    } else if (pair.rest < 0) {
      pair.rest = std::max(kLowest, pair.rest + pair.rest);
    }
  }
  std::make_heap(heap_.begin(), heap_.end(), [this](const Entry& a, const Entry& b) { return less(a, b); });
  change(best, 0);  // if all are below 0, so is the best, and is set aside as well: subword-nmt then reads it as 0
  return best;
}

void Pairs::merged(Number number, u64 merges_done) {
  change(number, 0);
  (*this)[number].count = 0;
  for (const Number one : changed_) {
    Pair& pair = (*this)[one];
    pair.changed = false;
    if (pair.counted && !is_rare(pair.count)) push(one);
  }
  changed_.clear();
  if (!is_rare(0)) push(number);
  if (merges_done % 100 == 0) put_rare_aside();
}

}  // namespace bpe
