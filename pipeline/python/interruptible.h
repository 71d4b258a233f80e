#pragma once
// Long-running operations of the library, called from Python: errors become exceptions, and Ctrl-C interrupts.

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "pipeline/core/error.h"

namespace ggufmill::python {

// Returns an instance of ggufmill.Error. Requires the GIL.
pybind11::object to_python(const Error& error);
// Raises the error. Requires the GIL.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(result).value();
}

// Starts a thread; raises an error if the system cannot provide one. Requires the GIL.
std::thread start_thread(std::function<void()> work);

// Progress of an operation, as passed to the Python function `progress`.
struct ProgressNow {
  std::uint64_t bytes_read = 0, bytes_to_read = 0, bytes_written = 0, bytes_to_write = 0;
  std::string tensor;  // last finished tensor; may be empty
  double seconds = 0;  // since the start of the operation
};

// A slot in which a thread of the library stores its progress. Thread-safe.
class ProgressSlot {
 public:
  void set(ProgressNow now) {
    const std::scoped_lock lock(mutex_);
    now_ = std::move(now);
    is_new_ = true;
  }
  // Returns false if there is no new progress.
  bool take(ProgressNow& into) {
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(is_new_, false)) return false;
    into = now_;
    return true;
  }

 private:
  std::mutex mutex_;
  ProgressNow now_;
  bool is_new_ = false;
};

// Returns a progress function for an operation that only reads: stores `done` of `total` bytes in the slot.
inline auto read_progress(ProgressSlot& slot) {
  using Clock = std::chrono::steady_clock;
  return [&slot, start = Clock::now()](std::uint64_t done, std::uint64_t total) {
    slot.set({done, total, 0, 0, "", std::chrono::duration<double>(Clock::now() - start).count()});
  };
}

// Calls `wait(50 ms)` without the GIL until it returns true, which means that the work is done. Between the calls, with
// the GIL, runs signal handlers and calls `progress` (a Python function or None) with new progress from the slot. If
// these raise an exception, sets `stop`, waits for the work to end, and rethrows the exception. Must be called with the
// GIL, on the thread that called Python.
void wait_for(const std::function<bool(std::chrono::milliseconds)>& wait, std::atomic<bool>& stop, ProgressSlot& slot,
              const pybind11::object& progress);

// Runs `work(stop, slot)` in a separate thread, which must not use Python, and returns its Result or Status. Must be
// called with the GIL; other threads can acquire the GIL while the work runs.
template <class Work>
auto interruptible(const Work& work, const pybind11::object& progress = pybind11::none()) {
  using Given = decltype(work(std::declval<const std::atomic<bool>&>(), std::declval<ProgressSlot&>()));
  std::atomic<bool> stop{false};
  ProgressSlot slot;
  std::optional<Given> given;
  std::exception_ptr thrown;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;  // guarded by the mutex
  std::thread thread = start_thread([&] {
    try {
      given.emplace(work(stop, slot));
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::scoped_lock lock(mutex);
    is_over = true;
    changed.notify_one();
  });
  const auto wait = [&](std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return is_over; });
  };
  try {
    wait_for(wait, stop, slot, progress);
  } catch (...) {
    thread.join();
    throw;
  }
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
  return std::move(*given);
}

}  // namespace ggufmill::python
