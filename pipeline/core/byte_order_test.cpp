#include "pipeline/core/byte_order.h"

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

std::vector<std::byte> counting(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

}  // namespace

TEST_CASE("plain elements are swapped individually") {
  for (const char* name : {"F32", "F64", "F16", "BF16", "I16", "I32", "I64", "I8"}) {
    const TypeInfo& type = type_named(name);
    CAPTURE(name);
    std::vector<std::byte> bytes = counting(5 * type.block_bytes);
    swap_words(type, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t element = i / type.block_bytes * type.block_bytes;
      CHECK(bytes[i] == static_cast<std::byte>(element + type.block_bytes - 1 - i % type.block_bytes));
    }
  }
}

TEST_CASE("only the words of a quantized block are swapped") {
  const TypeInfo& type = type_named("Q8_K");
  std::vector<std::byte> bytes = counting(2 * type.block_bytes);
  const std::vector<std::byte> before = bytes;
  swap_words(type, bytes);
  for (const std::size_t block : {std::size_t{0}, std::size_t{type.block_bytes}}) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(bytes[block + i] == before[block + 3 - i]);
    CHECK(std::memcmp(&bytes[block + 4], &before[block + 4], 256) == 0);
    for (std::size_t i = 260; i < 292; ++i) CHECK(bytes[block + i] == before[block + (i ^ 1)]);
  }
}

TEST_CASE("swapping twice gives the same bytes back, for every type") {
  for (const TypeInfo& type : built_in_types()) {
    INFO(type.name);
    std::vector<std::byte> bytes = counting(std::size_t{3} * type.block_bytes);
    swap_words(type, bytes);
    swap_words(type, bytes);
    CHECK(bytes == counting(bytes.size()));
  }
}

TEST_CASE("words are inside their block, for every type") {
  for (const TypeInfo& type : built_in_types())
    for (const WordField& field : type.words)
      CHECK(field.offset + std::size_t{field.count} * field.width <= type.block_bytes);
}
