#include "pipeline/core/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <vector>

namespace ggufmill {
namespace {

// clang-format off
constexpr TypeInfo kBuiltIn[] = {
    {0, "F32", TypeClass::kFloat, 1, 4, {ScaleFormat::kF32, 0, 1}, {{0, 1, 4}}},
    {1, "F16", TypeClass::kFloat, 1, 2, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {2, "Q4_0", TypeClass::kQuantized, 32, 18, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {3, "Q4_1", TypeClass::kQuantized, 32, 20, {ScaleFormat::kF16, 0, 2}, {{0, 2, 2}}},
    {6, "Q5_0", TypeClass::kQuantized, 32, 22, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {7, "Q5_1", TypeClass::kQuantized, 32, 24, {ScaleFormat::kF16, 0, 2}, {{0, 2, 2}}},
    {8, "Q8_0", TypeClass::kQuantized, 32, 34, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {9, "Q8_1", TypeClass::kQuantized, 32, 36, {ScaleFormat::kF16, 0, 2}, {{0, 2, 2}}},
    {10, "Q2_K", TypeClass::kQuantized, 256, 84, {ScaleFormat::kF16, 80, 2}, {{80, 2, 2}}},
    {11, "Q3_K", TypeClass::kQuantized, 256, 110, {ScaleFormat::kF16, 108, 1}, {{108, 1, 2}}},
    {12, "Q4_K", TypeClass::kQuantized, 256, 144, {ScaleFormat::kF16, 0, 2}, {{0, 2, 2}}},
    {13, "Q5_K", TypeClass::kQuantized, 256, 176, {ScaleFormat::kF16, 0, 2}, {{0, 2, 2}}},
    {14, "Q6_K", TypeClass::kQuantized, 256, 210, {ScaleFormat::kF16, 208, 1}, {{208, 1, 2}}},
    {15, "Q8_K", TypeClass::kQuantized, 256, 292, {ScaleFormat::kF32, 0, 1}, {{0, 1, 4}, {260, 16, 2}}},
    {16, "IQ2_XXS", TypeClass::kQuantized, 256, 66, {ScaleFormat::kF16, 0, 1}, {{0, 33, 2}}},
    {17, "IQ2_XS", TypeClass::kQuantized, 256, 74, {ScaleFormat::kF16, 0, 1}, {{0, 33, 2}}},
    {18, "IQ3_XXS", TypeClass::kQuantized, 256, 98, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {19, "IQ1_S", TypeClass::kQuantized, 256, 50, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}, {34, 8, 2}}},
    {20, "IQ4_NL", TypeClass::kQuantized, 32, 18, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {21, "IQ3_S", TypeClass::kQuantized, 256, 110, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {22, "IQ2_S", TypeClass::kQuantized, 256, 82, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {23, "IQ4_XS", TypeClass::kQuantized, 256, 136, {ScaleFormat::kF16, 0, 1}, {{0, 2, 2}}},
    {24, "I8", TypeClass::kInteger, 1, 1, {}, {}},
    {25, "I16", TypeClass::kInteger, 1, 2, {}, {{0, 1, 2}}},
    {26, "I32", TypeClass::kInteger, 1, 4, {}, {{0, 1, 4}}},
    {27, "I64", TypeClass::kInteger, 1, 8, {}, {{0, 1, 8}}},
    {28, "F64", TypeClass::kFloat, 1, 8, {ScaleFormat::kF64, 0, 1}, {{0, 1, 8}}},
    {29, "IQ1_M", TypeClass::kQuantized, 256, 56, {ScaleFormat::kIq1m, 48, 1}, {{48, 4, 2}}},
    {30, "BF16", TypeClass::kFloat, 1, 2, {ScaleFormat::kBf16, 0, 1}, {{0, 1, 2}}},
    {34, "TQ1_0", TypeClass::kQuantized, 256, 54, {ScaleFormat::kF16, 52, 1}, {{52, 1, 2}}},
    {35, "TQ2_0", TypeClass::kQuantized, 256, 66, {ScaleFormat::kF16, 64, 1}, {{64, 1, 2}}},
    {39, "MXFP4", TypeClass::kQuantized, 32, 17, {ScaleFormat::kE8m0, 0, 1}, {}},
    {40, "NVFP4", TypeClass::kQuantized, 64, 36, {}, {}},
    {41, "Q1_0", TypeClass::kQuantized, 128, 18, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
    {42, "Q2_0", TypeClass::kQuantized, 64, 18, {ScaleFormat::kF16, 0, 1}, {{0, 1, 2}}},
};
// clang-format on

bool same_word(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// The built-in types, then the foreign ones. Filled once before threads start; never shrinks. Reserved, so that
// pointers into it stay valid.
struct Table {
  std::vector<TypeInfo> types;
  std::deque<std::string> names;  // of the foreign types

  Table() {
    types.reserve(std::size(kBuiltIn) + kMostForeign);
    types.assign(std::begin(kBuiltIn), std::end(kBuiltIn));
  }
  static constexpr std::size_t kMostForeign = 256;
};

Table& table() {
  static Table instance;
  return instance;
}

}  // namespace

std::span<const TypeInfo> all_types() { return table().types; }

const TypeInfo* find_type(TypeId id) {
  for (const TypeInfo& type : table().types)
    if (type.id == id) return &type;
  return nullptr;
}

const TypeInfo* find_type(std::string_view name) {
  for (const TypeInfo& type : table().types)
    if (same_word(type.name, name)) return &type;
  return nullptr;
}

const TypeInfo& type_named(std::string_view name) {
  const TypeInfo* type = find_type(name);
  if (!type) std::abort();
  return *type;
}

Status add_foreign_type(TypeId id, std::string name, std::uint32_t block_elements, std::uint32_t block_bytes) {
  Table& all = table();
  const TypeInfo* by_id = find_type(id);
  const TypeInfo* by_name = find_type(name);
  if (by_id && by_id == by_name && by_id->block_elements == block_elements && by_id->block_bytes == block_bytes)
    return ok();
  if (by_id || by_name)
    return Error{ExitCode::kKernel, "", fmt::format("type '{}' (id {}) is already another type", name, id), "", ""};
  if (name.empty() || block_elements == 0 || block_bytes == 0)
    return Error{ExitCode::kKernel, "", fmt::format("type id {}: empty name or block", id), "", ""};
  if (all.types.size() == all.types.capacity())
    return Error{ExitCode::kKernel, "", fmt::format("more than {} foreign types", Table::kMostForeign), "", ""};
  all.names.push_back(std::move(name));
  all.types.push_back({id, all.names.back(), TypeClass::kForeign, block_elements, block_bytes, {}, {}});
  return ok();
}

Result<std::uint64_t> bytes_of(const TypeInfo& type, std::uint64_t elements) {
  if (elements % type.block_elements != 0)
    return input_error("", fmt::format("{} elements are no multiple of the {} of a block of {}", elements,
                                       type.block_elements, type.name));
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / type.block_elements, std::uint64_t{type.block_bytes}, &bytes))
    return input_error("", fmt::format("{} elements of {} are more than 2^64 bytes", elements, type.name));
  return bytes;
}

}  // namespace ggufmill
