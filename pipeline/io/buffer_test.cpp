#include "pipeline/io/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a buffer starts at a page") {
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
  CHECK(from.span().empty());
}

TEST_CASE("a destroyed buffer is given back to the system") {
  void* data = nullptr;
  {
    const Buffer buffer(1 << 20);
    data = buffer.data();
  }
  unsigned char resident = 0;
  CHECK(::mincore(data, 1, &resident) == -1);
}

TEST_CASE("memory that cannot be had is an error") {
  const Result<Buffer> buffer = Buffer::allocate(std::size_t{1} << 62);
  REQUIRE_FALSE(buffer);
  CHECK(buffer.error().code == ExitCode::kTransient);
}
