#pragma once
// The stop of the operation that a thread carries out, for what waits where no argument can pass one on: the search for
// credentials while a source is opened.

#include <atomic>

namespace ggufmill {

// Sets the stop of this thread until it is destroyed; then the one before counts again. Scopes of a thread end in
// reverse order.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>* stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

// Returns the stop of this thread; null: there is none.
const std::atomic<bool>* stop_of_thread();

}  // namespace ggufmill
