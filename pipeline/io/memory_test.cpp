#include "pipeline/io/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a budget grants no more than it has") {
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

TEST_CASE("released memory can be acquired again, and the peak is kept") {
  Budget budget(100);
  REQUIRE(budget.try_acquire(90));
  budget.release(90);
  CHECK(budget.try_acquire(10));
  CHECK(budget.in_use() == 10);
  CHECK(budget.peak() == 90);
}

TEST_CASE("threads together never hold more than the budget") {
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

TEST_CASE("a buffer starts at a page boundary") {
  const Buffer buffer(5000);
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) == 0);
  CHECK(buffer.size() == 5000);
}

TEST_CASE("every byte of a buffer can be written") {
  const Buffer buffer(5000);
  for (std::byte& byte : buffer.span()) byte = std::byte{1};
  CHECK(buffer.span()[4999] == std::byte{1});
}

TEST_CASE("an empty buffer is empty") {
  CHECK(Buffer().span().empty());
  CHECK(Buffer(0).span().empty());
}

TEST_CASE("a moved buffer keeps its memory and leaves nothing behind") {
  Buffer from(4096);
  const std::byte* data = from.data();
  Buffer into(8192);
  into = std::move(from);
  CHECK(into.data() == data);
  CHECK(into.size() == 4096);
  CHECK(from.span().empty());  // NOLINT(bugprone-use-after-move): that is the question
}

TEST_CASE("a large buffer is returned to the system when destroyed") {
  void* data = nullptr;
  {
    const Buffer buffer(SpareMemory::kMaxBytes + 1);
    data = buffer.data();
  }
  unsigned char resident = 0;
  CHECK(::mincore(data, 1, &resident) == -1);
}

TEST_CASE("no more than the limit of destroyed buffers is kept") {
  {
    std::vector<Buffer> buffers;
    buffers.reserve(30);
    for (int i = 0; i < 30; ++i) buffers.emplace_back(1 << 20);
  }
  CHECK(SpareMemory::instance().kept() <= SpareMemory::kMaxBytes);
}

TEST_CASE("the next buffer of a size reuses the last one") {
  const std::byte* data = Buffer(12345).data();
  CHECK(Buffer(12288 + 1).data() == data);
}

TEST_CASE("reused memory has the new size") {
  for (const std::size_t bytes : {100000, 5000, 3000000, 1, 70000}) {
    const Buffer buffer(bytes);
    for (std::byte& byte : buffer.span()) byte = std::byte{1};
    CHECK(buffer.span().size() == bytes);
  }
}

TEST_CASE("unavailable memory is an error") {
  for (const std::size_t bytes : {std::size_t{1} << 62, ~std::size_t{0}}) {
    const Result<Buffer> buffer = Buffer::allocate(bytes);
    REQUIRE_FALSE(buffer);
    CHECK(buffer.error().code == ExitCode::kTransient);
  }
}
