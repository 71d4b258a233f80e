#include "pipeline/core/types.h"

#include <cctype>
#include <set>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

TypeInfo foreign(TypeId id, std::string_view name, std::uint32_t elements, std::uint32_t bytes) {
  return {id, name, TypeClass::kForeign, elements, bytes, {}};
}

TEST_CASE("types: the types of products are types", "[types]") {
  for (const TypeInfo& type : built_in_types()) {
    INFO(type.name);
    const TypeFacts& facts = type.facts;
    if (!facts.partner.empty()) CHECK((Types().find(facts.partner) && type.type_class != TypeClass::kInteger));
    if (facts.candidate != CandidateFor::kNone) CHECK((facts.search && facts.file_type >= 0));
    if (facts.candidate == CandidateFor::kNarrowRows) CHECK(type.block_elements < 256);
    if (facts.of_activations) CHECK((facts.file_type < 0 && facts.candidate == CandidateFor::kNone));
  }
}

}  // namespace

TEST_CASE("every type is found by id and by name in any letter case") {
  for (const TypeInfo& type : built_in_types()) {
    REQUIRE(Types().find(type.id) == &type);
    std::string lower(type.name);
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    REQUIRE(Types().find(lower) == &type);
  }
}

TEST_CASE("ids and names are unique") {
  std::set<TypeId> ids;
  std::set<std::string_view> names;
  for (const TypeInfo& type : built_in_types()) {
    CHECK(ids.insert(type.id).second);
    CHECK(names.insert(type.name).second);
  }
}

TEST_CASE("scales and words are inside the block") {
  for (const TypeInfo& type : built_in_types()) {
    INFO(type.name);
    for (const BlockField& field : type.fields) {
      CHECK(field.offset + field.bytes() <= type.block_bytes);
      CHECK((field.count != 0) == (field.format != FieldFormat::kNone));
    }
  }
}

TEST_CASE("removed ids are unknown") {
  for (TypeId id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 0xffffffffu}) CHECK(Types().find(id) == nullptr);
}

TEST_CASE("source types have separate ids and names and are not output types") {
  std::set<TypeId> ids;
  for (const TypeInfo& type : source_types()) {
    CHECK(ids.insert(type.id).second);
    CHECK(is_source_type(type));
    CHECK((type.block_elements == 1 || type.type_class == TypeClass::kInteger));
    CHECK(Types().find(type.id) == nullptr);
    CHECK(Types().find(type.name) == nullptr);
    CHECK(find_source_type(type.id) == &type);
    CHECK(find_source_type(type.name) == &type);
    CHECK(&type_named(type.name) == &type);
  }
  for (const TypeInfo& type : built_in_types()) CHECK_FALSE(is_source_type(type));
}

TEST_CASE("bits per weight") {
  CHECK(type_named("Q4_K").bits_per_weight() == 4.5);
  CHECK(type_named("F32").bits_per_weight() == 32);
}

TEST_CASE("bytes_of refuses a part of a block") { CHECK_FALSE(bytes_of(type_named("Q4_K"), 255)); }

TEST_CASE("bytes_of refuses an overflow") { CHECK_FALSE(bytes_of(type_named("F64"), 1ull << 61)); }

TEST_CASE("bytes_of counts blocks") { CHECK(bytes_of(type_named("Q4_K"), 512).value() == 288); }

TEST_CASE("a foreign type can be added again only unchanged") {
  Types types;
  REQUIRE(types.add(foreign(0x10100, "TEST_A", 4, 3)));
  CHECK(types.find("test_a")->block_bytes == 3);
  CHECK(types.find(0x10100) == types.find("TEST_A"));
  CHECK(types.all().size() == built_in_types().size() + 1);
  CHECK(types.add(foreign(0x10100, "TEST_A", 4, 3)));
  CHECK_FALSE(types.add(foreign(0x10100, "TEST_A", 4, 2)));
  CHECK_FALSE(types.add(foreign(0x10101, "q4_k", 4, 2)));
}

TEST_CASE("types with other fields are other types") {
  Types types;
  TypeInfo type = foreign(0x10100, "TEST_A", 4, 3);
  REQUIRE(types.add(type));
  type.fields[0] = {FieldFormat::kWord16, 0, 1};
  CHECK_FALSE(types.add(type));
}

TEST_CASE("a row has its header and its blocks, up to 2^64 bytes") {
  TypeInfo type = foreign(0x10100, "TEST_A", 4, 3);
  CHECK(row_bytes(type, 8) == 6);
  CHECK(grain_bytes(type, 8) == 3);
  type.row_header_bytes = 2;
  CHECK(row_bytes(type, 8) == 8);
  CHECK(grain_bytes(type, 8) == 8);
  CHECK(row_bytes(type, UINT64_MAX - 3) == UINT64_MAX / 4 * 3 + 2);
  type.block_bytes = 5;
  CHECK(row_bytes(type, UINT64_MAX - 3) == UINT64_MAX);
}

TEST_CASE("encoders of modules are found by name, with the types that have them") {
  Types types;
  REQUIRE(types.add(foreign(0x10100, "TEST_A", 4, 3)));
  const TypeInfo &q4_0 = type_named("Q4_0"), &own = *types.find(0x10100);
  CHECK(types.find_encoder("reference") == &reference_method());
  CHECK(types.find_encoder("search") == &search_method());
  CHECK(types.find_encoder("mine") == nullptr);
  for (const TypeInfo* type : {&q4_0, &own, &q4_0}) types.add_encoder("mine", type->id);
  REQUIRE(types.find_encoder("mine") != nullptr);
  CHECK(types.find_encoder("mine")->types == std::vector<const TypeInfo*>{&q4_0, &own});
  CHECK(types.encoders().size() == 4);
  types.add_encoder("search", own.id);
  CHECK(own.facts.search);
  CHECK(types.encoders().size() == 4);
  CHECK(Types().find_encoder("mine") == nullptr);
}

TEST_CASE("types added in one context are not visible in another; the built-in ones are the same") {
  Types a, b;
  REQUIRE(a.add(foreign(0x10100, "TEST_A", 4, 3)));
  REQUIRE(b.add(foreign(0x10100, "TEST_B", 8, 5)));
  CHECK(a.find(0x10100)->name == "TEST_A");
  CHECK(b.find(0x10100)->name == "TEST_B");
  CHECK(b.find("TEST_A") == nullptr);
  CHECK(Types().find(0x10100) == nullptr);
  CHECK(a.find("Q4_K") == b.find("Q4_K"));
  const TypeInfo* type = a.find("TEST_A");
  const Types copy = a;
  a = b;
  CHECK(copy.find("TEST_A") == type);
}
