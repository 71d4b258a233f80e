#include "pipeline/io/threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ggufmill {

void on_threads(unsigned threads, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(guarded);
    guarded();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ggufmill
