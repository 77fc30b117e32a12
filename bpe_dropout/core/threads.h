// Runs work(0), ..., work(count - 1), each on a thread of its own, and passes on what the first throws.
// Threads live as long as the call: nothing is left that a fork could break.
#pragma once

#include <exception>
#include <functional>
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
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(guarded, i);
  guarded(0);
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace bpe
