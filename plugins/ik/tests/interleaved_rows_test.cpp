#include "pipeline/core/interleaved.h"

#include <algorithm>
#include <bit>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/sha256.h"
#include "tests/support/tsv.h"

using namespace ggufmill;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kBlocks = 3, kGroups = 3;

// Types of which all plain ones are known, as with the kernel module of ik_llama.cpp.
Types all_types() {
  Types types;
  TypeId id = 0x20000;
  for (const InterleavedType& type : interleaved_types())
    if (!types.find(type.plain))
      REQUIRE(types.add(
          {id++, type.plain, TypeClass::kForeign, type.block_elements, type.block_bytes, {}, type.row_header_bytes},
          "ik"));
  return types;
}

// Rows of the plain type, and how they are interleaved.
struct Rows {
  const TypeInfo& type;
  std::uint64_t row_bytes = ggufmill::row_bytes(type, kBlocks* type.block_elements);
  Bytes plain = Bytes(kGroups * type.group_rows * row_bytes);

  explicit Rows(const TypeInfo& interleaved) : type(interleaved) {
    std::mt19937_64 random(type.id);
    for (std::byte& byte : plain) byte = static_cast<std::byte>(random() & 0xff);
  }
  template <class Byte>
  std::vector<Byte*> group(Byte* first) const {
    std::vector<Byte*> rows;
    for (std::uint32_t k = 0; k < type.group_rows; ++k) rows.push_back(first + k * row_bytes);
    return rows;
  }
  Bytes interleaved() const {
    Bytes made(plain.size());
    for (std::uint64_t at = 0; at < made.size(); at += type.group_rows * row_bytes)
      Interleaving::of(type).interleave(group(plain.data() + at), kBlocks, made.data() + at);
    return made;
  }
  Bytes separated(const Bytes& from) const {
    Bytes made(from.size());
    for (std::uint64_t at = 0; at < made.size(); at += type.group_rows * row_bytes)
      Interleaving::of(type).separate(from.data() + at, kBlocks, group(made.data() + at));
    return made;
  }
};

}  // namespace

TEST_CASE("rows are interleaved as ik_llama.cpp does") {
  const Types types = all_types();
  const Tsv golden = read_tsv("plugins/ik/tests/interleaved.tsv");
  const auto with_plain = std::ranges::count(interleaved_types(), "", &InterleavedType::ungrouped);
  CHECK(golden.rows.size() == static_cast<std::size_t>(with_plain));
  for (const std::vector<std::string>& row : golden.rows) {
    CAPTURE(row[0]);
    const TypeInfo* const type = types.find(row[0]);
    REQUIRE(type);
    const Bytes made = Rows(*type).interleaved();
    CHECK(sha256_hex(made) == row[1]);
  }
}

TEST_CASE("separated rows are those that were interleaved") {
  const Types types = all_types();
  for (const TypeInfo* type : types.interleaved()) {
    CAPTURE(type->name);
    const Rows rows(*type);
    CHECK(rows.separated(rows.interleaved()) == rows.plain);
  }
}

TEST_CASE("every bit of a block of a group comes from another bit of the rows") {
  for (const InterleavedType& type : interleaved_types()) {
    CAPTURE(type.name);
    std::vector<int> from(type.rows * type.block_bytes * 8), to = from;
    for (const BitMove& move : interleaved_layout(type.plain, type.rows).moves) {
      REQUIRE(move.row < type.rows);
      REQUIRE(move.plain + move.bytes <= type.block_bytes);
      REQUIRE(move.group + move.bytes <= type.rows * type.block_bytes);
      for (int bit = 0; bit < 8; ++bit)
        if (move.mask >> bit & 1) {
          ++to[8u * move.group + static_cast<unsigned>(bit)];
          ++from[8u * (move.row * type.block_bytes + move.plain) + static_cast<unsigned>(bit - move.shift)];
        }
    }
    CHECK(std::ranges::count(from, 1) == static_cast<std::ptrdiff_t>(from.size()));
    CHECK(std::ranges::count(to, 1) == static_cast<std::ptrdiff_t>(to.size()));
  }
}

TEST_CASE("an interleaved type is known with its plain type, and is not listed among plain ones") {
  const Types none;
  REQUIRE(none.find("q4_k_r4"));
  CHECK(none.find("Q4_K_R4")->plain == &type_named("Q4_K"));
  CHECK(none.find("Q4_K_R4")->group_rows == 4);
  CHECK(none.find(TypeId{202})->name == "Q4_0_R8");
  CHECK_FALSE(none.find("IQ4_K_R4"));
  Types types;
  REQUIRE(types.add({139, "IQ4_K", TypeClass::kForeign, 256, 144, {}}, "ik"));
  REQUIRE(types.find(TypeId{339}));
  CHECK(types.find(TypeId{339})->plain == types.find("IQ4_K"));
  CHECK(types.all().size() == built_in_types().size() + 1);
  CHECK(types.interleaved().size() == none.interleaved().size() + 1);
}

TEST_CASE("rows that files have only interleaved have no type to choose, and one for other tensors") {
  Types types;
  REQUIRE(types.add({0x20000, "IQ1_S_R1", TypeClass::kForeign, 32, 6, {}, 2}, "ik"));
  CHECK(types.all().size() == built_in_types().size());
  const TypeInfo* const type = types.find("IQ1_S_R4");
  REQUIRE(type);
  CHECK(type->plain->name == "IQ1_S_R1");
  CHECK_FALSE(types.find_choice("IQ1_S_R1"));
  CHECK(&ungrouped_type(*type) == &type_named("IQ1_S"));
  CHECK(&ungrouped_type(*types.find("Q4_K_R4")) == &type_named("Q4_K"));
}

TEST_CASE("a type of a module with other blocks than those of ik_llama.cpp has no interleaved type") {
  Types types;
  REQUIRE(types.add({139, "IQ4_K", TypeClass::kForeign, 256, 143, {}}, "mine"));
  CHECK_FALSE(types.find("IQ4_K_R4"));
}
