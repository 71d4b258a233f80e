#include "pipeline/core/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "pipeline/core/text.h"
#include "pipeline/core/type_family.h"
#include "pipeline/core/wings.h"

namespace ggufmill {
namespace {

using enum FieldFormat;
using CandidateFor::kWideRows, CandidateFor::kNarrowRows, CandidateFor::kAllRows;

// clang-format off
constexpr TypeInfo kBuiltIn[] = {
    {0, "F32", TypeClass::kFloat, 1, 4, {{kF32, 0, 1}}, 0,
     {.file_type = 0, .partner = "F32"}},
    {1, "F16", TypeClass::kFloat, 1, 2, {{kF16, 0, 1}}, 0,
     {.file_type = 1, .partner = "F16"}},
    {2, "Q4_0", TypeClass::kQuantized, 32, 18, {{kF16, 0, 1}}, 0,
     {.file_type = 2, .partner = "Q8_0", .candidate = kNarrowRows, .search = true, .lattice = true, .covariance = true}},
    {3, "Q4_1", TypeClass::kQuantized, 32, 20, {{kF16, 0, 2}}, 0,
     {.file_type = 3, .partner = "Q8_1", .candidate = kNarrowRows, .search = true, .lattice = true, .covariance = true}},
    {6, "Q5_0", TypeClass::kQuantized, 32, 22, {{kF16, 0, 1}}, 0,
     {.file_type = 8, .partner = "Q8_0", .candidate = kNarrowRows, .search = true, .lattice = true, .covariance = true}},
    {7, "Q5_1", TypeClass::kQuantized, 32, 24, {{kF16, 0, 2}}, 0,
     {.file_type = 9, .partner = "Q8_1", .candidate = kNarrowRows, .search = true, .lattice = true, .covariance = true}},
    {8, "Q8_0", TypeClass::kQuantized, 32, 34, {{kF16, 0, 1}}, 0,
     {.file_type = 7, .partner = "Q8_0", .candidate = kAllRows, .search = true, .lattice = true, .covariance = true}},
    {9, "Q8_1", TypeClass::kQuantized, 32, 36, {{kF16, 0, 2}}, 0,
     {.partner = "Q8_1", .of_activations = true}},
    {10, "Q2_K", TypeClass::kQuantized, 256, 84, {{kF16, 80, 2}}, 0,
     {.file_type = 10, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true}},
    {11, "Q3_K", TypeClass::kQuantized, 256, 110, {{kF16, 108, 1}}, 0,
     {.file_type = 12, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true}},
    {12, "Q4_K", TypeClass::kQuantized, 256, 144, {{kF16, 0, 2}}, 0,
     {.file_type = 15, .partner = "Q8_K", .candidate = kWideRows, .search = true, .lattice = true, .covariance = true}},
    {13, "Q5_K", TypeClass::kQuantized, 256, 176, {{kF16, 0, 2}}, 0,
     {.file_type = 17, .partner = "Q8_K", .candidate = kWideRows, .search = true, .lattice = true, .covariance = true}},
    {14, "Q6_K", TypeClass::kQuantized, 256, 210, {{kF16, 208, 1}}, 0,
     {.file_type = 18, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true}},
    {15, "Q8_K", TypeClass::kQuantized, 256, 292, {{kF32, 0, 1}, {kWord16, 260, 16}}, 0,
     {.of_activations = true}},
    {16, "IQ2_XXS", TypeClass::kQuantized, 256, 66, {{kF16, 0, 1}, {kWord16, 2, 32}}, 0,
     {.file_type = 19, .partner = "Q8_K", .search = true, .covariance = true, .has_book = true}},
    {17, "IQ2_XS", TypeClass::kQuantized, 256, 74, {{kF16, 0, 1}, {kWord16, 2, 32}}, 0,
     {.file_type = 20, .partner = "Q8_K", .search = true, .covariance = true, .has_book = true}},
    {18, "IQ3_XXS", TypeClass::kQuantized, 256, 98, {{kF16, 0, 1}}, 0,
     {.file_type = 23, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true, .has_book = true}},
    {19, "IQ1_S", TypeClass::kQuantized, 256, 50, {{kF16, 0, 1}, {kWord16, 34, 8}}, 0,
     {.file_type = 24, .partner = "Q8_K", .search = true, .has_book = true}},
    {20, "IQ4_NL", TypeClass::kQuantized, 32, 18, {{kF16, 0, 1}}, 0,
     {.file_type = 25, .partner = "Q8_0", .candidate = kNarrowRows, .search = true, .lattice = true, .covariance = true}},
    {21, "IQ3_S", TypeClass::kQuantized, 256, 110, {{kF16, 0, 1}}, 0,
     {.file_type = 26, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true, .has_book = true}},
    {22, "IQ2_S", TypeClass::kQuantized, 256, 82, {{kF16, 0, 1}}, 0,
     {.file_type = 28, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true, .has_book = true}},
    {23, "IQ4_XS", TypeClass::kQuantized, 256, 136, {{kF16, 0, 1}, {kWord16, 2, 1}}, 0,
     {.file_type = 30, .partner = "Q8_K", .candidate = kWideRows, .search = true, .covariance = true}},
    {24, "I8", TypeClass::kInteger, 1, 1, {}},
    {25, "I16", TypeClass::kInteger, 1, 2, {{kWord16, 0, 1}}},
    {26, "I32", TypeClass::kInteger, 1, 4, {{kWord32, 0, 1}}},
    {27, "I64", TypeClass::kInteger, 1, 8, {{kWord64, 0, 1}}},
    {28, "F64", TypeClass::kFloat, 1, 8, {{kF64, 0, 1}}},
    {29, "IQ1_M", TypeClass::kQuantized, 256, 56, {{kIq1m, 48, 1}}, 0,
     {.file_type = 31, .partner = "Q8_K", .search = true, .has_book = true}},
    {30, "BF16", TypeClass::kFloat, 1, 2, {{kBf16, 0, 1}}, 0,
     {.file_type = 32, .partner = "BF16"}},
    {34, "TQ1_0", TypeClass::kQuantized, 256, 54, {{kF16, 52, 1}}, 0,
     {.file_type = 36, .partner = "Q8_K"}},
    {35, "TQ2_0", TypeClass::kQuantized, 256, 66, {{kF16, 64, 1}}, 0,
     {.file_type = 37, .partner = "Q8_K"}},
    {39, "MXFP4", TypeClass::kQuantized, 32, 17, {{kE8m0, 0, 1}}, 0,
     {.partner = "Q8_0", .search = true, .covariance = true}},
    {40, "NVFP4", TypeClass::kQuantized, 64, 36, {}, 0,
     {.file_type = 39, .partner = "Q8_0", .search = true, .covariance = true}},
    {41, "Q1_0", TypeClass::kQuantized, 128, 18, {{kF16, 0, 1}}, 0,
     {.file_type = 40, .partner = "Q8_0"}},
    {42, "Q2_0", TypeClass::kQuantized, 64, 18, {{kF16, 0, 1}}, 0,
     {.file_type = 41, .partner = "Q8_0"}},
};

constexpr TypeInfo kSource[] = {
    {kFirstSourceType + 0, "F8_E4M3", TypeClass::kFloat, 1, 1, {{kE4m3, 0, 1}}},
    {kFirstSourceType + 1, "F8_E5M2", TypeClass::kFloat, 1, 1, {{kE5m2, 0, 1}}},
    {kFirstSourceType + 2, "BOOL", TypeClass::kInteger, 1, 1, {}},
    {kFirstSourceType + 3, "U8", TypeClass::kInteger, 1, 1, {}},
    {kFirstSourceType + 4, "U16", TypeClass::kInteger, 1, 2, {{kWord16, 0, 1}}},
    {kFirstSourceType + 5, "U32", TypeClass::kInteger, 1, 4, {{kWord32, 0, 1}}},
    {kFirstSourceType + 6, "U64", TypeClass::kInteger, 1, 8, {{kWord64, 0, 1}}},
    {kFirstSourceType + 7, "U4", TypeClass::kInteger, 2, 1, {}},
    {kFirstSourceType + 8, "U2", TypeClass::kInteger, 4, 1, {}},
    {kFirstSourceType + 9, "U3", TypeClass::kInteger, 8, 3, {}},
    {kFirstSourceType + 10, "U5", TypeClass::kInteger, 8, 5, {}},
    {kFirstSourceType + 11, "U6", TypeClass::kInteger, 4, 3, {}},
};
// clang-format on

constexpr std::size_t kMaxForeign = 256;

bool has_plain_rows(const InterleavedType& type, const TypeInfo& plain) {
  return type.plain == plain.name && type.block_elements == plain.block_elements &&
         type.block_bytes == plain.block_bytes && type.row_header_bytes == plain.row_header_bytes;
}

TypeInfo interleaved_of(const InterleavedType& type, const TypeInfo& plain) {
  return {type.id,
          type.name,
          TypeClass::kForeign,
          plain.block_elements,
          plain.block_bytes,
          {},
          plain.row_header_bytes,
          {},
          &plain,
          type.rows,
          type.ungrouped.empty() ? nullptr : &type_named(type.ungrouped)};
}

bool is_only_in_groups(const TypeInfo& plain) {
  return std::ranges::any_of(interleaved_types(), [&](const InterleavedType& type) {
    return !type.ungrouped.empty() && has_plain_rows(type, plain);
  });
}

// Interleaved types of the built-in ones. Also constants.
std::span<const TypeInfo> built_in_interleaved() {
  static const std::vector<TypeInfo> kTypes = [] {
    std::vector<TypeInfo> types;
    for (const InterleavedType& type : interleaved_types())
      for (const TypeInfo& plain : kBuiltIn)
        if (has_plain_rows(type, plain)) types.push_back(interleaved_of(type, plain));
    return types;
  }();
  return kTypes;
}

}  // namespace

struct Types::Foreign {
  std::string name, module;
  TypeInfo info;
};

struct Types::Added {  // deques, as the addresses must be stable
  std::deque<Foreign> types;
  std::deque<EncoderMethod> encoders;
};

std::size_t BlockField::width() const {
  switch (format) {
    case kWord16:
    case kF16:
    case kBf16:
    case kIq1m:
      return 2;
    case kWord32:
    case kF32:
      return 4;
    case kWord64:
    case kF64:
      return 8;
    default:
      return 1;
  }
}

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
  if (added_)
    for (const Foreign& type : added_->types)
      if (!type.info.plain && !is_only_in_groups(type.info)) types.push_back(&type.info);
  return types;
}

std::vector<const TypeInfo*> Types::interleaved() const {
  std::vector<const TypeInfo*> types;
  for (const TypeInfo& type : built_in_interleaved()) types.push_back(&type);
  if (added_)
    for (const Foreign& type : added_->types)
      if (type.info.plain) types.push_back(&type.info);
  return types;
}

const TypeInfo* Types::find(TypeId id) const {
  for (const std::span<const TypeInfo> built_in : {std::span<const TypeInfo>(kBuiltIn), built_in_interleaved()})
    for (const TypeInfo& type : built_in)
      if (type.id == id) return &type;
  if (added_)
    for (const Foreign& type : added_->types)
      if (type.info.id == id) return &type.info;
  return nullptr;
}

const TypeInfo* Types::find(std::string_view name) const {
  for (const std::span<const TypeInfo> built_in : {std::span<const TypeInfo>(kBuiltIn), built_in_interleaved()})
    for (const TypeInfo& type : built_in)
      if (same_word(type.name, name)) return &type;
  if (added_)
    for (const Foreign& type : added_->types)
      if (same_word(type.name, name)) return &type.info;
  return nullptr;
}

const TypeInfo* Types::find_choice(std::string_view name) const {
  const TypeInfo* const type = find(name);
  return type && !is_only_in_groups(*type) ? type : nullptr;
}

const EncoderMethod& reference_method() {
  static const EncoderMethod method{"reference"};
  return method;
}

const EncoderMethod& search_method() {
  static const EncoderMethod method{"search"};
  return method;
}

const EncoderMethod& covariance_method() {
  static const EncoderMethod method{"covariance"};
  return method;
}

std::vector<const EncoderMethod*> Types::encoders() const {
  std::vector<const EncoderMethod*> all{&reference_method(), &search_method(), &covariance_method()};
  if (added_)
    for (const EncoderMethod& method : added_->encoders) all.push_back(&method);
  return all;
}

const EncoderMethod* Types::find_encoder(std::string_view name) const {
  for (const EncoderMethod* method : encoders())
    if (method->name == name) return method;
  return nullptr;
}

Types::Added& Types::added() {
  if (!added_) added_ = std::make_shared<Added>();
  return *added_;
}

std::vector<std::string> Types::modules() const {
  std::vector<std::string> modules;
  if (added_)
    for (const Foreign& type : added_->types)
      if (std::ranges::count(modules, type.module) == 0) modules.push_back(type.module);
  return modules;
}

bool Types::have_module(std::string_view module) const { return std::ranges::count(modules(), module) != 0; }

std::string module_help(std::string_view module) {
  return fmt::format(
      "install the package ggufmill-{}, or name the module's folder with --kernel-dir; `ggufmill kernels` "
      "lists the modules",
      module);
}

std::string Types::module_of(const TypeInfo& type) const {
  if (added_)
    for (const Foreign& each : added_->types)
      if (&each.info == &type) return each.module;
  return {};
}

std::string Types::definer_of(const TypeInfo& type) const {
  const std::string module = module_of(type);
  return module.empty() ? "ggufmill" : fmt::format("the module {}", quoted_name(module));
}

Status Types::add(const TypeInfo& type, const std::string& module) {
  const TypeInfo* by_id = find(type.id);
  const TypeInfo* by_name = find(type.name);
  if (by_id && by_id == by_name && by_id->block_elements == type.block_elements &&
      by_id->block_bytes == type.block_bytes && by_id->row_header_bytes == type.row_header_bytes &&
      std::ranges::equal(by_id->fields, type.fields))
    return ok();
  if (by_id || by_name)
    return Error{ExitCode::kKernel, "",
                 fmt::format("the module {} defines type '{}' (id {}) differently than {}", quoted_name(module),
                             type.name, type.id, definer_of(by_id ? *by_id : *by_name)),
                 "", ""};
  if (type.name.empty() || type.block_elements == 0 || type.block_bytes == 0)
    return Error{ExitCode::kKernel, "", fmt::format("type id {}: empty name or block", type.id), "", ""};
  std::deque<Foreign>& types = added().types;
  if (types.size() == kMaxForeign)
    return Error{ExitCode::kKernel, "", fmt::format("more than {} foreign types", kMaxForeign), "", ""};
  Foreign& foreign = types.emplace_back(Foreign{std::string(type.name), module, type});
  foreign.info.name = foreign.name;
  foreign.info.type_class = TypeClass::kForeign;
  foreign.info.facts = {};
  add_interleaved(foreign.info, module);
  return ok();
}

void Types::add_encoder(std::string_view name, TypeId id) {
  const TypeInfo* const type = find(id);
  if (!type || name == reference_method().name || name == covariance_method().name) return;
  if (name == search_method().name) {
    if (added_)
      for (Foreign& foreign : added_->types)
        if (&foreign.info == type) foreign.info.facts.search = true;
    return;
  }
  std::deque<EncoderMethod>& encoders = added().encoders;
  auto method = std::ranges::find(encoders, name, &EncoderMethod::name);
  if (method == encoders.end()) method = encoders.insert(method, EncoderMethod{std::string(name)});
  if (std::ranges::count(method->types, type) != 0) return;
  const auto id_of = [](const TypeInfo* each) { return each->id; };
  method->types.insert(std::ranges::upper_bound(method->types, id, {}, id_of), type);
}

std::uint64_t row_bytes(const TypeInfo& type, std::uint64_t columns) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(columns / type.block_elements, std::uint64_t{type.block_bytes}, &bytes) ||
      __builtin_add_overflow(bytes, std::uint64_t{type.row_header_bytes}, &bytes))
    return UINT64_MAX;
  return bytes;
}

std::uint64_t grain_bytes(const TypeInfo& type, std::uint64_t columns) {
  return type.row_header_bytes == 0 ? type.block_bytes : row_bytes(type, columns);
}

void Types::add_interleaved(const TypeInfo& plain, const std::string& module) {
  for (const InterleavedType& type : interleaved_types())
    if (has_plain_rows(type, plain) && !find(type.id) && !find(type.name))
      added_->types.push_back({std::string(type.name), module, interleaved_of(type, plain)});
}

Error unknown_type(std::string_view name, const Types& types, std::vector<std::string> words) {
  const std::string what = fmt::format("unknown quantization type {}", quoted_name(name));
  if (std::ranges::count(type_families(), name, &TypeFamily::module) != 0)
    return usage_error(fmt::format("the kernel module '{}' is not loaded", name), module_help(name));
  if (const auto member = family_member(name))
    return member->why.empty()
               ? usage_error(what, type_help(*member->family))
               : usage_error(fmt::format("the type {} is not supported: {}", member->name, member->why));
  if (std::string help = omitted_wing_help(name); !help.empty()) return usage_error(what, std::move(help));
  for (const std::vector<const TypeInfo*>& known : {types.all(), types.interleaved()})
    for (const TypeInfo* type : known) words.emplace_back(type->name);
  const std::string meant = did_you_mean(name, words);
  return usage_error(what,
                     (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) + "`ggufmill types` lists them");
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
