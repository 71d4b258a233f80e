#include "pipeline/io/budget.h"

#include <thread>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a budget gives what it has and no more") {
  Budget budget(100);
  CHECK(budget.try_acquire(60));
  CHECK_FALSE(budget.try_acquire(41));
  CHECK(budget.try_acquire(40));
  CHECK(budget.in_use() == 100);
}

TEST_CASE("a request whose sum would overflow is refused") {
  Budget budget(100);
  REQUIRE(budget.try_acquire(60));
  CHECK_FALSE(budget.try_acquire(~0ull));
}

TEST_CASE("what is released can be acquired again, and the peak stays") {
  Budget budget(100);
  REQUIRE(budget.try_acquire(90));
  budget.release(90);
  CHECK(budget.try_acquire(10));
  CHECK(budget.in_use() == 10);
  CHECK(budget.peak() == 90);
}

TEST_CASE("threads never hold more than the budget together") {
  Budget budget(1000);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&budget, t] {
      for (int i = 0; i < 20000; ++i)
        if (const std::uint64_t bytes = 100 + 150 * t + i % 7; budget.try_acquire(bytes)) budget.release(bytes);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(budget.in_use() == 0);
  CHECK(budget.peak() <= 1000);
}
