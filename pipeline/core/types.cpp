#include "pipeline/core/types.h"

#include <fmt/format.h>

#include <cstdlib>

#include "pipeline/core/text.h"

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

constexpr TypeInfo kSource[] = {
    {kFirstSourceType + 0, "F8_E4M3", TypeClass::kFloat, 1, 1, {ScaleFormat::kE4m3, 0, 1}, {}},
    {kFirstSourceType + 1, "F8_E5M2", TypeClass::kFloat, 1, 1, {ScaleFormat::kE5m2, 0, 1}, {}},
    {kFirstSourceType + 2, "BOOL", TypeClass::kInteger, 1, 1, {}, {}},
    {kFirstSourceType + 3, "U8", TypeClass::kInteger, 1, 1, {}, {}},
    {kFirstSourceType + 4, "U16", TypeClass::kInteger, 1, 2, {}, {{0, 1, 2}}},
    {kFirstSourceType + 5, "U32", TypeClass::kInteger, 1, 4, {}, {{0, 1, 4}}},
    {kFirstSourceType + 6, "U64", TypeClass::kInteger, 1, 8, {}, {{0, 1, 8}}},
    {kFirstSourceType + 7, "U4", TypeClass::kInteger, 2, 1, {}, {}},
    {kFirstSourceType + 8, "U2", TypeClass::kInteger, 4, 1, {}, {}},
};
// clang-format on

constexpr std::size_t kMaxForeign = 256;

}  // namespace

std::span<const TypeInfo> built_in_types() { return kBuiltIn; }

std::span<const TypeInfo> source_types() { return kSource; }

const TypeInfo* find_source_type(TypeId id) {
  for (const TypeInfo& type : kSource)
    if (type.id == id) return &type;
  return nullptr;
}

const TypeInfo* find_source_type(std::string_view name) {
  for (const TypeInfo& type : kSource)
    if (type.name == name) return &type;
  return nullptr;
}

const TypeInfo& type_named(std::string_view name) {
  const TypeInfo* type = Types().find(name);
  if (!type) type = find_source_type(name);
  if (!type) std::abort();
  return *type;
}

std::vector<const TypeInfo*> Types::all() const {
  std::vector<const TypeInfo*> types;
  for (const TypeInfo& type : kBuiltIn) types.push_back(&type);
  if (foreign_)
    for (const Foreign& type : *foreign_) types.push_back(&type.info);
  return types;
}

const TypeInfo* Types::find(TypeId id) const {
  for (const TypeInfo& type : kBuiltIn)
    if (type.id == id) return &type;
  if (foreign_)
    for (const Foreign& type : *foreign_)
      if (type.info.id == id) return &type.info;
  return nullptr;
}

std::span<const IkType> ik_types() {
  // Source: ik_llama.cpp, ggml/include/ggml.h.
  static constexpr IkType kTypes[] = {{133, "Q6_0"},   {134, "IQ1_BN"}, {135, "IQ2_BN"},  {137, "IQ2_K"},
                                      {138, "IQ3_K"},  {139, "IQ4_K"},  {140, "IQ5_K"},   {141, "IQ6_K"},
                                      {144, "IQ4_KS"}, {145, "IQ2_KS"}, {146, "IQ4_KSS"}, {151, "Q8_KV"},
                                      {152, "IQ5_KS"}, {153, "IQ2_KT"}, {154, "IQ3_KT"},  {155, "IQ4_KT"},
                                      {156, "IQ3_KS"}, {157, "IQ2_KL"}, {158, "IQ1_KT"}};
  return kTypes;
}

const TypeInfo* Types::find(std::string_view name) const {
  for (const TypeInfo& type : kBuiltIn)
    if (same_word(type.name, name)) return &type;
  if (foreign_)
    for (const Foreign& type : *foreign_)
      if (same_word(type.name, name)) return &type.info;
  return nullptr;
}

std::string Types::definer_of(const TypeInfo& type) const {
  if (foreign_)
    for (const Foreign& each : *foreign_)
      if (&each.info == &type) return fmt::format("the module {}", quoted_name(each.module));
  return "ggufmill";
}

Status Types::add(TypeId id, std::string name, std::uint32_t block_elements, std::uint32_t block_bytes,
                  const std::string& module, std::uint32_t row_header_bytes) {
  const TypeInfo* by_id = find(id);
  const TypeInfo* by_name = find(name);
  if (by_id && by_id == by_name && by_id->block_elements == block_elements && by_id->block_bytes == block_bytes &&
      by_id->row_header_bytes == row_header_bytes)
    return ok();
  if (by_id || by_name)
    return Error{ExitCode::kKernel, "",
                 fmt::format("the module {} defines type '{}' (id {}) differently than {}", quoted_name(module), name,
                             id, definer_of(by_id ? *by_id : *by_name)),
                 "", ""};
  if (name.empty() || block_elements == 0 || block_bytes == 0)
    return Error{ExitCode::kKernel, "", fmt::format("type id {}: empty name or block", id), "", ""};
  if (!foreign_) foreign_ = std::make_shared<std::deque<Foreign>>();
  if (foreign_->size() == kMaxForeign)
    return Error{ExitCode::kKernel, "", fmt::format("more than {} foreign types", kMaxForeign), "", ""};
  Foreign& type = foreign_->emplace_back(Foreign{
      std::move(name), module, {id, {}, TypeClass::kForeign, block_elements, block_bytes, {}, {}, row_header_bytes}});
  type.info.name = type.name;
  return ok();
}

Result<std::uint64_t> bytes_of(const TypeInfo& type, std::uint64_t elements) {
  if (elements % type.block_elements != 0)
    return input_error("", fmt::format("{} elements are not a multiple of the block size {} of {}", elements,
                                       type.block_elements, type.name));
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / type.block_elements, std::uint64_t{type.block_bytes}, &bytes) ||
      __builtin_add_overflow(bytes, std::uint64_t{type.row_header_bytes}, &bytes))
    return input_error("", fmt::format("{} elements of {} exceed 2^64 bytes", elements, type.name));
  return bytes;
}

}  // namespace ggufmill
