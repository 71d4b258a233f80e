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
    swap_words(type, 0, bytes);
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
  swap_words(type, 0, bytes);
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
    swap_words(type, 0, bytes);
    swap_words(type, 0, bytes);
    CHECK(bytes == counting(bytes.size()));
  }
}

TEST_CASE("the words of a row header are swapped, and those of every block") {
  Types types;
  TypeInfo described{0x10100, "TEST_ROWS", TypeClass::kForeign, 4, 5, {{FieldFormat::kWord16, 1, 2}}};
  described.fields[1] = {FieldFormat::kF32, 0, 1, true};
  described.fields[2] = {FieldFormat::kWord16, 4, 1, true};
  described.row_header_bytes = 7;
  REQUIRE(types.add(described));
  const TypeInfo& type = *types.find(0x10100);
  CHECK(can_swap(type));
  constexpr std::size_t kColumns = 8, kRow = 7 + 2 * 5;
  std::vector<std::byte> bytes = counting(2 * kRow + 3);
  const std::vector<std::byte> before = bytes;
  swap_words(type, kColumns, bytes);
  const std::size_t order[kRow] = {3, 2, 1, 0, 5, 4, 6, 7, 9, 8, 11, 10, 12, 14, 13, 16, 15};
  for (std::size_t i = 0; i < 2 * kRow; ++i) CHECK(bytes[i] == before[i / kRow * kRow + order[i % kRow]]);
  for (std::size_t i = 2 * kRow; i < bytes.size(); ++i) CHECK(bytes[i] == before[i]);
}

TEST_CASE("a foreign type that nobody describes cannot be swapped") {
  Types types;
  REQUIRE(types.add({0x10100, "TEST_A", TypeClass::kForeign, 4, 3, {}}));
  CHECK_FALSE(can_swap(*types.find(0x10100)));
}
