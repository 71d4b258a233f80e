#pragma once
// Long work of the library, called from Python: errors as exceptions, and an end by Ctrl-C.

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

// An instance of ggufmill.Error. With the GIL.
pybind11::object to_python(const Error& error);
// Raises it. With the GIL.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(result).value();
}

// Raises an error where the system gives no thread. With the GIL.
std::thread start_thread(std::function<void()> work);

// How far a piece of work is, as the function `progress` of Python is given it.
struct ProgressNow {
  std::uint64_t bytes_read = 0, bytes_to_read = 0, bytes_written = 0, bytes_to_write = 0;
  std::string tensor;  // finished last; may be empty
  double seconds = 0;  // since the work began
};

// Where a thread of the library leaves how far it is. Thread-safe.
class ProgressSlot {
 public:
  void set(ProgressNow now) {
    const std::scoped_lock lock(mutex_);
    now_ = std::move(now);
    is_new_ = true;
  }
  // False where there is nothing new.
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

// A progress function of work that reads alone: leaves in the slot `done` of `total` bytes.
inline auto read_progress(ProgressSlot& slot) {
  using Clock = std::chrono::steady_clock;
  return [&slot, start = Clock::now()](std::uint64_t done, std::uint64_t total) {
    slot.set({done, total, 0, 0, "", std::chrono::duration<double>(Clock::now() - start).count()});
  };
}

// Calls `wait(50 ms)`, which says whether the work is over, without the GIL until it is; between the calls, with the
// GIL, `progress` (a Python function or None) with what is new in the slot, and the handlers of signals. What these
// raise sets `stop`, and is raised when the work has ended. On the thread that called Python, with the GIL.
void wait_for(const std::function<bool(std::chrono::milliseconds)>& wait, std::atomic<bool>& stop, ProgressSlot& slot,
              const pybind11::object& progress);

// What `work(stop, slot)` gives, a Result or Status, done by a thread of its own that touches nothing of Python. With
// the GIL, which other threads can have meanwhile.
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
