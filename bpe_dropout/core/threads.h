// Runs work(0), ..., work(count - 1), each on a thread of its own, and passes on what the first throws.
// Threads live as long as the call: nothing is left that a fork could break.
#pragma once

#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace bpe {

inline void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  const auto guarded = [&](std::size_t i) {
    try {
      work(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::size_t started = 1;
  try {
    for (; started < count; ++started) threads.emplace_back(guarded, started);
  } catch (const std::system_error&) {  // no more threads can be started: this one does their work
  }
  guarded(0);
  for (std::size_t i = started; i < count; ++i) guarded(i);
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace bpe
