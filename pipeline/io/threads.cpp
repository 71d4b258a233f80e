#include "pipeline/io/threads.h"

#include <algorithm>
#include <atomic>
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

Status for_each_on_threads(unsigned threads, std::size_t count,
                           const std::function<Status(std::size_t item, std::vector<std::byte>& buffer)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status status = ok();  // guarded by the mutex
  on_threads(static_cast<unsigned>(std::min<std::size_t>(threads, count)), [&] {
    std::vector<std::byte> buffer;
    for (std::size_t item; (item = next++) < count;) {
      Status one = work(item, buffer);
      const std::lock_guard lock(mutex);
      if (!one && status) status = std::move(one);
      if (!status) return;
    }
  });
  return status;
}

}  // namespace ggufmill
