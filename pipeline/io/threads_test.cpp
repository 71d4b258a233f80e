#include "pipeline/io/threads.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("work is done once on each thread, and all of it before the call returns") {
  const unsigned threads = GENERATE(1u, 2u, 5u);
  std::mutex mutex;
  std::multiset<std::thread::id> seen;
  on_threads(threads, [&] {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  CHECK(seen.size() == threads);
  CHECK(seen.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("an exception in a thread is rethrown when the others are done") {
  std::atomic<int> calls{0};
  CHECK_THROWS_AS(on_threads(3,
                             [&] {
                               if (calls++ == 1) throw std::runtime_error("one");
                             }),
                  std::runtime_error);
  CHECK(calls == 3);
}
