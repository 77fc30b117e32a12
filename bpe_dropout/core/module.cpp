// The Python interface of the core: conversions, keeping arrays alive, and releasing the interpreter's
// lock. All checks of the user's input are made in Python, in the modules above this one.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>

#include "learner.h"
#include "probability.h"
#include "stream.h"
#include "threads.h"

namespace py = pybind11;
using namespace bpe;

namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style>;

py::str to_str(const std::string& text) { return py::str(text.data(), text.size()); }

// What pybind11 makes of it, too, in twice the time: a dictionary has thousands of pieces.
std::vector<std::pair<std::string, std::int32_t>> to_ids(const py::dict& given) {
  std::vector<std::pair<std::string, std::int32_t>> ids;
  ids.reserve(given.size());
  for (const auto& [piece, id] : given) {
    py::ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(piece.ptr(), &size);
    const long number = text ? PyLong_AsLong(id.ptr()) : -1;
    if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
    ids.emplace_back(std::string(text, static_cast<std::size_t>(size)), static_cast<std::int32_t>(number));
  }
  return ids;
}

std::string_view view(const py::bytes& bytes) {
  char* data = nullptr;
  py::ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
  return {data, static_cast<std::size_t>(size)};
}

py::array to_array(Buffer buffer) {
  const auto size = static_cast<py::ssize_t>(buffer.size());
  std::int32_t* const data = buffer.release();
  if (!data) return Array<std::int32_t>(0);
  return Array<std::int32_t>(size, data, py::capsule(data, [](void* held) { std::free(held); }));
}

template <class T>
py::array to_array(std::vector<T> values) {
  auto* const held = new std::vector<T>(std::move(values));
  return Array<T>(static_cast<py::ssize_t>(held->size()), held->data(),
                  py::capsule(held, [](void* h) { delete static_cast<std::vector<T>*>(h); }));
}

using PyParts = std::vector<std::pair<std::string, bool>>;

std::vector<Part> to_parts(const PyParts& given) {
  std::vector<Part> parts;
  for (const auto& [text, fixed] : given) {
    if (!text.empty()) parts.push_back({text, fixed});
  }
  return parts;
}

Divide to_divide(const py::object& callable) {
  if (callable.is_none()) return {};
  // Held by a pointer that takes the lock to release it, since a stream may be destroyed without the lock.
  std::shared_ptr<py::object> held(new py::object(callable), [](py::object* object) {
    py::gil_scoped_acquire lock;
    delete object;
  });
  return [held](std::string_view word) {
    py::gil_scoped_acquire lock;
    return to_parts((*held)(py::str(word.data(), word.size())).cast<PyParts>());
  };
}

py::list piece_strings(const Merges& merges, const Word& word, const std::vector<Piece>& pieces) {
  py::list strings;
  for (const Piece piece : pieces) {
    std::string text;
    merges.append(word, piece, text);
    strings.append(to_str(text));
  }
  return strings;
}

struct PyWord {
  PyWord(std::string word, const PyParts& given) : text(std::move(word)), parts(to_parts(given)) {
    if (text.empty()) throw py::value_error("a word has at least one character");
  }
  Word word() const { return {text, parts.empty() ? nullptr : &parts}; }
  std::string text;
  std::vector<Part> parts;
};

py::list draw_pieces(const Merges& merges, const PyWord& word, const Dropout& dropout, const Key& key, u64 position) {
  Scratch scratch;
  Decoder decoder(key, position, key.first(position));
  draw(merges, word.word(), dropout, &decoder, scratch);
  return piece_strings(merges, word.word(), scratch.pieces);
}

// Segments lines one by one. Words are remembered, and each piece is made a string of Python once.
class Lines {
 public:
  Lines(std::shared_ptr<const Merges> merges, const Dropout& dropout, Split split, const py::object& divide,
        std::size_t memory)
      : merges_(merges),
        dropout_(dropout),
        split_(split),
        divide_(divide),
        stream_(merges, nullptr, dropout, split, to_divide(divide), memory) {
    strings_.resize(merges->known_pieces());
  }

  py::list segment(const py::str& line, const Key& key) {
    // A glossary is Python's, and may let another thread in, or call this itself: that one gets a stream of its own.
    if (busy_) return Lines(merges_, dropout_, split_, divide_, 0).segment(line, key);
    const Busy busy(busy_);
    py::ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(line.ptr(), &size);
    if (!text) throw py::error_already_set();
    py::list strings;
    stream_.line({text, static_cast<std::size_t>(size)}, key, [&](const Word& word, const Piece* pieces, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) append(word, pieces[i], strings);
    });
    return strings;
  }

 private:
  struct Busy {
    explicit Busy(bool& flag) : flag_(flag) { flag_ = true; }
    ~Busy() { flag_ = false; }
    bool& flag_;
  };

  void append(const Word& word, Piece piece, py::list& to) {
    const bool known = piece < strings_.size();
    if (known && strings_[piece]) return to.append(strings_[piece]);
    std::string text;
    merges_->append(word, piece, text);
    const py::str string = to_str(text);
    if (known) strings_[piece] = string;
    to.append(string);
  }

  std::shared_ptr<const Merges> merges_;
  Dropout dropout_;
  Split split_;
  py::object divide_;
  Stream stream_;
  std::vector<py::object> strings_;
  bool busy_ = false;
};

py::list listed(const Merges& merges, const PyWord& word, const std::vector<Outcome>& outcomes) {
  py::list list;
  for (const auto& [pieces, probability] : outcomes) {
    list.append(py::make_tuple(py::tuple(piece_strings(merges, word.word(), pieces)), probability));
  }
  return list;
}

py::list distribution_of(const Merges& merges, const PyWord& word, const Dropout& dropout, std::size_t most) {
  return listed(merges, word, distribution(merges, word.word(), dropout, most));
}

py::list most_probable_of(const Merges& merges, const PyWord& word, const Dropout& dropout, std::size_t count,
                          std::size_t most) {
  return listed(merges, word, most_probable(merges, word.word(), dropout, count, most));
}

// At least, and at most.
std::pair<double, double> probability_of(const Merges& merges, const PyWord& word, const Dropout& dropout,
                                         const std::vector<std::string>& pieces, std::size_t most) {
  const Bounds bounds = probability(merges, word.word(), dropout, pieces, most);
  return {bounds.least, bounds.most};
}

// The mean number of pieces of each word: exact for the first `exact` of them, as far as they have no more
// than `most` states, and the mean of `draws` for the others. Also, which are exact.
py::tuple expected_lengths(const Merges& merges, const std::vector<PyWord>& words, std::size_t exact,
                           const Array<u64>& draws, const Dropout& dropout, std::size_t most, std::size_t threads) {
  std::vector<double> lengths(words.size());
  std::vector<u8> is_exact(words.size());
  const u64* const how_many = draws.data();
  {
    py::gil_scoped_release unlock;
    in_threads(threads, [&](std::size_t thread) {
      Scratch scratch;
      for (std::size_t i = thread; i < words.size(); i += threads) {
        const Word word = words[i].word();
        if (i < exact || dropout.never() || dropout.always()) {
          try {
            lengths[i] = expected_length(merges, word, dropout, most);
            is_exact[i] = 1;
            continue;
          } catch (const TooManyStates&) {
          }
        }
        u64 sum = 0;
        for (u64 draw_number = 0; draw_number < how_many[i]; ++draw_number) {
          const Key key{0, draw_number, 0, i};
          Decoder decoder(key, 0, key.first(0));
          draw(merges, word, dropout, &decoder, scratch);
          sum += scratch.pieces.size();
        }
        lengths[i] = static_cast<double>(sum) / static_cast<double>(how_many[i]);
      }
    });
  }
  return py::make_tuple(to_array(std::move(lengths)), to_array(std::move(is_exact)));
}

// Bytes; more is slow under the address sanitizer, which marks all of them for each word.
constexpr std::size_t kOneTable = 1 << 24;

// What a table of `word` answers, and what draw() answers, to the same numbers.
py::list table_of(const Merges& merges, const PyWord& word, const Dropout& dropout, double finest) {
  Tables tables(kOneTable);
  auto shelf = tables.shelves(1)[0];
  Scratch scratch;
  const auto ref = tables.add(shelf, merges, word.word(), dropout, finest, 0, piece_itself, scratch);
  py::list outcomes;
  if (!ref) return outcomes;
  for (const auto& [pieces, probability] : tables.probabilities(ref)) {
    outcomes.append(py::make_tuple(py::tuple(piece_strings(merges, word.word(), pieces)), probability));
  }
  return outcomes;
}

py::tuple table_against_draw(const Merges& merges, const PyWord& word, const Dropout& dropout, double finest, u64 seed,
                             std::size_t draws) {
  Tables tables(kOneTable);
  auto shelf = tables.shelves(1)[0];
  Scratch scratch;
  const auto ref = tables.add(shelf, merges, word.word(), dropout, finest, 0, piece_itself, scratch);
  std::size_t answered = 0, differing = 0;
  for (std::size_t i = 0; ref && i < draws; ++i) {
    const Key key{seed, 0, 0, i};
    const Find find = tables.find(ref, key.first(0));
    if (find == kUnresolved) continue;
    ++answered;
    Decoder decoder(key, 0, key.first(0));
    draw(merges, word.word(), dropout, &decoder, scratch);
    const u32* const ids = tables.ids(ref) + ids_begin(find);
    differing += !std::equal(ids, ids + ids_count(find), scratch.pieces.begin(), scratch.pieces.end());
  }
  return py::make_tuple(answered, differing);
}

// The same of the word's chart, with numbers at the end of the way on which nothing is dropped, too. None if it has none.
py::object chart_against_draw(const Merges& merges, const PyWord& word, const Dropout& dropout, u64 seed,
                              std::size_t draws) {
  Tables tables(kOneTable);
  auto shelf = tables.shelves(1)[0];
  Scratch scratch;
  const auto ref = tables.add_chart(shelf, merges, word.word(), dropout, piece_itself, scratch);
  const u32* const chart = tables.chart(ref);
  if (!chart) return py::none();
  const u64 last = tables.last_to_drop(ref) << 32;
  std::vector<u64> numbers{0, kAll, last, last - 1, last + 1, last + 0xFFFFFFFF, last + (u64{1} << 32)};
  for (std::size_t i = numbers.size(); i < draws; ++i) numbers.push_back(Key{seed, 0, 0, i}.first(0));
  std::size_t differing = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Key key{seed, 0, 0, i};
    const u64 first = numbers[i];
    Decoder decoder(key, 0, first), again(key, 0, first), counting(key, 0, first);
    draw(merges, word.word(), dropout, &decoder, scratch);
    std::int32_t ids[Chart::kMostIds];
    const u32 count = Chart::draw(chart, dropout, again, ids);
    const auto is_drawn = [&](const auto* some, u32 size) {
      return std::equal(some, some + size, scratch.pieces.begin(), scratch.pieces.end(),
                        [](auto id, Piece piece) { return static_cast<Piece>(id) == piece; });
    };
    bool same = is_drawn(ids, count) && Chart::draw(chart, dropout, counting, nullptr) == count;
    const Find find = tables.find(ref, first);
    if (find != kUnresolved) same = same && is_drawn(tables.ids(ref) + ids_begin(find), ids_count(find));
    differing += !same;
  }
  return py::int_(differing);
}

class Index {
 public:
  explicit Index(Split split) : split_(split) {}

  // The word numbers of the text and, for each line, how many words there are up to its end.
  py::tuple add(const py::bytes& text) {
    const std::string_view all = view(text);
    std::vector<u32> ids;
    std::vector<u64> ends;
    {
      py::gil_scoped_release unlock;
      check_text(all);
      std::vector<std::string_view> words;
      words.reserve(all.size() / 5);
      for_each_line(all, [&](std::string_view line) {
        for_each_word(line, split_, [&](std::string_view word) { words.push_back(word); });
        ends.push_back(words.size());
      });
      words_.add(words, ids);
      counts_.resize(words_.size());
      for (const u32 id : ids) ++counts_[id];
    }
    return py::make_tuple(to_array(std::move(ids)), to_array(std::move(ends)));
  }

  std::size_t size() const { return words_.size(); }
  py::bytes bytes() const { return py::bytes(words_.bytes()); }
  py::array ends() const { return to_array(std::vector<u64>(words_.ends())); }
  py::array counts() const { return to_array(std::vector<u64>(counts_)); }

 private:
  Split split_;
  Words words_;
  std::vector<u64> counts_;
};

// Lets Ctrl-C through and shows progress, some times a second, from work that runs without the lock.
class Pulse {
 public:
  explicit Pulse(py::object progress) : progress_(std::move(progress)) {}

  void operator()(u64 done, u64 all) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress_.is_none()) progress_(done, all);
    last_ = std::chrono::steady_clock::now();
  }

 private:
  const py::object progress_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// With total_symbols, the characters count as merges.
py::list learn(const py::bytes& words, const Array<i64>& counts, u64 merges, i64 min_frequency, bool total_symbols,
               const py::object& progress, std::size_t threads) {
  const std::string_view all = view(words);
  const i64* const how_often = counts.data();
  Pulse pulse(progress);
  const auto learned = [&] {
    py::gil_scoped_release unlock;
    Learner learner(all, how_often, min_frequency, threads, [&](u64 done) { pulse(done, merges); });
    if (total_symbols) merges -= std::min<u64>(merges, learner.characters());
    return learner.learn(merges);
  }();
  py::list pairs;
  for (const auto& [left, right] : learned) pairs.append(py::make_tuple(to_str(left), to_str(right)));
  return pairs;
}

// A sampler and the arrays that it reads.
template <class S>
struct Held {
  std::vector<py::object> arrays;
  std::unique_ptr<S> sampler;

  void check(const Array<std::int64_t>& listed, std::size_t first, std::size_t count) const {
    const std::size_t sentences = sampler->corpus().sentences;
    bool fits = first + count <= sentences;
    if (listed.size()) {
      fits = true;
      for (py::ssize_t i = 0; i < listed.size(); ++i) {
        fits = fits && listed.at(i) >= 0 && static_cast<std::size_t>(listed.at(i)) < sentences;
      }
    }
    if (!fits) throw py::index_error("no such sentence: the corpus has " + std::to_string(sentences));
  }

  static Selection select(const Array<std::int64_t>& listed, std::size_t first, std::size_t count) {
    if (!listed.size()) return {first, count, nullptr};
    return {0, static_cast<std::size_t>(listed.size()), listed.data()};
  }

  py::array lengths(const Key& key, std::size_t first, std::size_t count, const Array<std::int64_t>& listed,
                    int threads) const {
    check(listed, first, count);
    const Selection which = select(listed, first, count);
    Array<std::int32_t> out(static_cast<py::ssize_t>(which.count));
    std::int32_t* const data = out.mutable_data();
    py::gil_scoped_release unlock;
    sampler->lengths(key, which, threads, data);
    py::gil_scoped_acquire lock;
    return std::move(out);
  }

  py::tuple ids(const Key& key, std::size_t first, std::size_t count, const Array<std::int64_t>& listed,
                int threads) const {
    check(listed, first, count);
    const Selection which = select(listed, first, count);
    Array<std::int64_t> ends(static_cast<py::ssize_t>(which.count) + 1);
    std::int64_t* const data = ends.mutable_data();
    Buffer buffer = [&] {
      py::gil_scoped_release unlock;
      return sampler->ids(key, which, threads, data);
    }();
    return py::make_tuple(to_array(std::move(buffer)), ends);
  }
};

struct PyCorpus {
  Array<u32> words;
  Array<u64> sentence_ends;
  Array<u8> bytes;
  Array<u64> type_ends;

  Corpus corpus() const {
    return {words.data(), sentence_ends.data(), static_cast<std::size_t>(sentence_ends.size()) - 1,
            reinterpret_cast<const char*>(bytes.data()), type_ends.data(),
            static_cast<std::size_t>(type_ends.size()) - 1};
  }
};

using HeldDropout = Held<DropoutSampler>;
using HeldList = Held<ListSampler>;

HeldDropout make_dropout_sampler(const PyCorpus& corpus, const Array<u64>& counts,
                                 std::shared_ptr<const Merges> merges, std::shared_ptr<const Ids> ids,
                                 const std::unordered_map<u32, PyParts>& parts, const Dropout& dropout,
                                 std::size_t memory, int threads, const std::vector<std::int32_t>& before,
                                 const std::vector<std::int32_t>& after) {
  DropoutSampler::Parts divided;
  for (const auto& [type, given] : parts) divided[type] = to_parts(given);
  HeldDropout held{{corpus.words, corpus.sentence_ends, corpus.bytes, corpus.type_ends}, nullptr};
  const Corpus seen = corpus.corpus();
  const u64* const how_often = counts.data();
  py::gil_scoped_release unlock;
  held.sampler = std::make_unique<DropoutSampler>(seen, std::move(merges), std::move(ids), std::move(divided), dropout,
                                                  how_often, memory, threads, Frame{before, after});
  return held;
}

template <class T>
std::vector<T> copy(const Array<T>& array) {
  return {array.data(), array.data() + array.size()};
}

HeldList make_list_sampler(const py::object& corpus, std::size_t sentences, const Array<u64>& outcome_ends,
                           const Array<u64>& cumulated, const Array<u64>& id_ends, const Array<std::int32_t>& ids,
                           const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& after) {
  HeldList held;
  Corpus seen;
  seen.sentences = sentences;
  if (!corpus.is_none()) {
    const auto& given = corpus.cast<const PyCorpus&>();
    held.arrays = {given.words, given.sentence_ends, given.bytes, given.type_ends};
    seen = given.corpus();
  }
  held.sampler = std::make_unique<ListSampler>(seen, copy(outcome_ends), copy(cumulated), copy(id_ends), copy(ids),
                                               Frame{before, after});
  return held;
}

template <class H>
void bind_drawing(py::class_<H>& c) {
  c.def("lengths", &H::lengths).def("ids", &H::ids);
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  static PyObject* const invalid_text = PyErr_NewException("bpe_dropout._core.InvalidText", PyExc_ValueError, nullptr);
  m.attr("InvalidText") = py::reinterpret_borrow<py::object>(invalid_text);
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const InvalidText& bad) {
      PyErr_SetObject(invalid_text, py::make_tuple(bad.line, bad.byte).ptr());
    }
  });
  py::register_exception<TooManyStates>(m, "TooManyStates", PyExc_ValueError);

  py::enum_<Split>(m, "Split").value("SPACES", Split::kSpaces).value("WHITESPACE", Split::kWhitespace);

  py::class_<Key>(m, "Key").def(py::init([](u64 seed, u64 epoch, u64 side, u64 sentence) {
    return Key{seed, epoch, side, sentence};
  }));
  m.def("philox", [](const Block& counter, const std::array<u64, 2>& key) { return philox(counter, key); });
  m.def("first", [](const Key& key, u64 position) { return key.first(position); });
  m.def("choose", [](const Array<u64>& cumulated, const Key& key, u64 position) {
    return ListSampler::choose(cumulated.data(), cumulated.data() + cumulated.size(), key.first(position));
  });

  // A number, or a rate for each merge. Where a dropout is expected, a number will do.
  py::class_<Dropout>(m, "Dropout")
      .def(py::init<double>())
      .def(py::init([](std::vector<double> rates) { return Dropout::of(std::move(rates)); }));
  py::implicitly_convertible<py::float_, Dropout>();
  py::implicitly_convertible<py::int_, Dropout>();

  py::enum_<End>(m, "End").value("SUFFIX", End::kSuffix).value("SYMBOL", End::kSymbol).value("NONE", End::kNone);
  py::class_<Merges, std::shared_ptr<Merges>>(m, "Merges")
      .def(py::init<const std::vector<std::pair<std::string, std::string>>&, End, std::string,
                    const std::optional<std::unordered_set<std::string>>&,
                    const std::optional<std::vector<std::string>>&>());
  py::class_<Ids, std::shared_ptr<Ids>>(m, "Ids")
      .def(py::init([](std::shared_ptr<Merges> merges, const py::dict& dictionary, std::int32_t unknown) {
        return std::make_shared<Ids>(merges, to_ids(dictionary), unknown);
      }));
  py::class_<PyWord>(m, "Word").def(py::init<std::string, const PyParts&>());

  m.def("draw", &draw_pieces);
  m.def("distribution", &distribution_of);
  m.def("most_probable", &most_probable_of);
  m.def("probability", &probability_of);
  m.def("expected_lengths", &expected_lengths);
  m.def("uses_avx2", &uses_avx2);
  m.def("use_avx2", &use_avx2);
  m.def("table", &table_of);
  m.def("table_against_draw", &table_against_draw);
  m.def("chart_against_draw", &chart_against_draw);

  py::class_<Lines>(m, "Lines")
      .def(py::init([](std::shared_ptr<Merges> merges, const Dropout& dropout, Split split, const py::object& divide,
                       std::size_t memory) { return std::make_unique<Lines>(merges, dropout, split, divide, memory); }))
      .def("segment", &Lines::segment);
  py::class_<Streams>(m, "Streams")
      .def(py::init([](std::shared_ptr<Merges> merges, std::shared_ptr<Ids> ids, const Dropout& dropout, Split split,
                       const py::object& divide, std::size_t memory, std::size_t threads) {
        return std::make_unique<Streams>(merges, ids, dropout, split, to_divide(divide), memory, threads);
      }))
      .def("text",
           [](Streams& streams, const py::bytes& text, const Key& key) {
             const std::string_view all = view(text);
             const std::string out = [&] {
               py::gil_scoped_release unlock;
               return streams.text(all, key);
             }();
             return py::bytes(out);
           })
      .def("ids", [](Streams& streams, const py::bytes& text, const Key& key) {
        const std::string_view all = view(text);
        std::vector<std::int64_t> ends;
        Buffer buffer = [&] {
          py::gil_scoped_release unlock;
          return streams.ids(all, key, ends);
        }();
        return py::make_tuple(to_array(std::move(buffer)), to_array(std::move(ends)));
      });

  py::class_<Index>(m, "Index")
      .def(py::init<Split>())
      .def("add", &Index::add)
      .def("__len__", &Index::size)
      .def("bytes", &Index::bytes)
      .def("ends", &Index::ends)
      .def("counts", &Index::counts);

  m.def("learn", &learn);

  py::class_<PyCorpus>(m, "Corpus")
      .def(py::init([](Array<u32> words, Array<u64> sentence_ends, Array<u8> bytes, Array<u64> type_ends) {
        return PyCorpus{std::move(words), std::move(sentence_ends), std::move(bytes), std::move(type_ends)};
      }));
  py::class_<HeldDropout> dropout(m, "DropoutSampler");
  dropout.def(py::init(&make_dropout_sampler))
      .def_property_readonly("memory", [](const HeldDropout& held) { return held.sampler->memory(); })
      .def_property_readonly("tables", [](const HeldDropout& held) { return held.sampler->tables(); })
      .def_property_readonly("charts", [](const HeldDropout& held) { return held.sampler->charts(); });
  bind_drawing(dropout);
  py::class_<HeldList> list(m, "ListSampler");
  list.def(py::init(&make_list_sampler));
  bind_drawing(list);
}
