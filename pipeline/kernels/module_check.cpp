#include "pipeline/kernels/module_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "pipeline/core/encoder.h"
#include "pipeline/core/types.h"

namespace ggufmill {
namespace {

constexpr std::uint32_t kMaxKernels = 4096;
constexpr std::uint32_t kMaxRowHeader = 4096;  // bytes
constexpr std::uint32_t kKnownFlags = GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE | GGUFMILL_COMPENSATES;
constexpr std::uint32_t kKernelBytesOf1_0 = offsetof(ggufmill_kernel, encoder);

constexpr std::uint32_t kernel_bytes(std::uint32_t abi_minor) {
  return abi_minor == 0 ? kKernelBytesOf1_0 : sizeof(ggufmill_kernel);
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isprint(c); });
}

bool copy_word(const char* from, std::string& to) {
  if (!from) return false;
  const std::size_t length = strnlen(from, kMaxWordLength + 1);
  to.assign(from, std::min(length, kMaxWordLength));
  return length <= kMaxWordLength;
}

std::string what_it_does(const ggufmill_kernel& kernel) {
  return fmt::format("{} type id {}", kernel.operation == GGUFMILL_ENCODE ? "encodes" : "decodes", kernel.type_id);
}

// Returns kNone for an unknown format.
FieldFormat format_of(std::uint32_t format) {
  static constexpr std::pair<std::uint32_t, FieldFormat> kFormats[] = {
      {GGUFMILL_WORD_8, FieldFormat::kWord8},    {GGUFMILL_WORD_16, FieldFormat::kWord16},
      {GGUFMILL_WORD_32, FieldFormat::kWord32},  {GGUFMILL_WORD_64, FieldFormat::kWord64},
      {GGUFMILL_SCALE_F16, FieldFormat::kF16},   {GGUFMILL_SCALE_BF16, FieldFormat::kBf16},
      {GGUFMILL_SCALE_F32, FieldFormat::kF32},   {GGUFMILL_SCALE_F64, FieldFormat::kF64},
      {GGUFMILL_SCALE_E8M0, FieldFormat::kE8m0}, {GGUFMILL_SCALE_E4M3, FieldFormat::kE4m3},
      {GGUFMILL_SCALE_E5M2, FieldFormat::kE5m2},
  };
  for (const auto& [abi, format_here] : kFormats)
    if (abi == format) return format_here;
  return FieldFormat::kNone;
}

BlockField field_of(const ggufmill_field& field) {
  return {format_of(field.format), field.offset, field.count, field.part == GGUFMILL_IN_ROW_HEADER};
}

// Checks the description of a type's fields.
std::string check_fields(const ggufmill_kernel& kernel) {
  const std::string subject = fmt::format("the kernel that {}", what_it_does(kernel));
  if (kernel.field_count > GGUFMILL_MAX_FIELDS)
    return fmt::format("{} describes {} fields; the limit is {}", subject, kernel.field_count, GGUFMILL_MAX_FIELDS);
  if ((kernel.field_count == 0) != (kernel.fields == nullptr))
    return fmt::format("{} has a table of fields without a count, or a count without a table", subject);
  const std::span fields(kernel.fields, kernel.field_count);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const ggufmill_field& field = fields[i];
    if (format_of(field.format) == FieldFormat::kNone || field.part > GGUFMILL_IN_ROW_HEADER || field.count == 0)
      return fmt::format("{} describes field {} with an unknown format or part, or with no words", subject, i);
    const std::uint64_t room = field.part == GGUFMILL_IN_ROW_HEADER ? kernel.row_header_bytes : kernel.block_bytes;
    const std::uint64_t end = field.offset + field_of(field).bytes();
    if (end > room)
      return fmt::format("{} describes field {} up to byte {} of a {} of {} bytes", subject, i, end,
                         field.part == GGUFMILL_IN_ROW_HEADER ? "header" : "block", room);
    for (std::size_t k = 0; k < i; ++k)
      if (fields[k].part == field.part && fields[k].offset < end &&
          field.offset < fields[k].offset + field_of(fields[k]).bytes())
        return fmt::format("{} describes fields {} and {}, which overlap", subject, k, i);
  }
  return {};
}

// Checks the name of an encoder: it is part of pipeline files.
std::string check_encoder_name(const ggufmill_kernel& kernel) {
  std::string name;
  if (!kernel.encoder) return {};
  const bool is_good = copy_word(kernel.encoder, name) && is_name(name) &&
                       std::ranges::all_of(name, [](unsigned char c) { return !std::isupper(c) && c != '.'; });
  if (kernel.operation != GGUFMILL_ENCODE || !is_good)
    return fmt::format("the kernel that {} names its encoder, but {}", what_it_does(kernel),
                       is_good ? "is a decoder" : "not with lower-case letters, digits, '-', '_'");
  return {};
}

// Checks one kernel in isolation: the rules of the ABI that need no type table.
std::string check_rules(const ggufmill_kernel& kernel) {
  if (kernel.operation != GGUFMILL_DECODE && kernel.operation != GGUFMILL_ENCODE)
    return fmt::format("a kernel has the unknown operation {}", kernel.operation);
  std::string name;
  if (!copy_word(kernel.name, name) || !is_name(name))
    return fmt::format("the kernel that {} has no type name of letters, digits, '-', '_', '.'", what_it_does(kernel));
  if (!kernel.run) return fmt::format("the kernel that {} has no function", what_it_does(kernel));
  if (kernel.block_elements == 0 || kernel.block_bytes == 0)
    return fmt::format("the kernel that {} has an empty block", what_it_does(kernel));
  if (kernel.row_header_bytes > kMaxRowHeader)
    return fmt::format("the kernel that {} has a row header of {} bytes; the limit is {}", what_it_does(kernel),
                       kernel.row_header_bytes, kMaxRowHeader);
  const std::uint32_t allowed = kernel.operation == GGUFMILL_ENCODE ? kKnownFlags : 0;
  if ((kernel.flags & ~allowed) != 0) return fmt::format("the kernel that {} has unknown flags", what_it_does(kernel));
  std::string reason = check_encoder_name(kernel);
  if (!reason.empty()) return reason;
  constexpr std::uint32_t kImportance = GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE;
  const bool is_search = kernel.encoder && std::string_view(kernel.encoder) == "search";
  if ((kernel.flags & GGUFMILL_COMPENSATES) != 0 && (!is_search || (kernel.flags & kImportance) == 0))
    return fmt::format("the kernel that {} compensates, but is not a search with importance", what_it_does(kernel));
  return check_fields(kernel);
}

// Returns the type as the kernel describes it.
TypeInfo type_of(const ggufmill_kernel& kernel) {
  TypeInfo type{kernel.type_id, kernel.name, TypeClass::kForeign, kernel.block_elements, kernel.block_bytes, {}};
  static_assert(std::size(type.fields) == GGUFMILL_MAX_FIELDS);
  std::ranges::transform(std::span(kernel.fields, kernel.field_count), std::begin(type.fields), field_of);
  type.row_header_bytes = kernel.row_header_bytes;
  return type;
}

bool same_type(const ggufmill_kernel& a, const ggufmill_kernel& b) {
  return a.block_elements == b.block_elements && a.block_bytes == b.block_bytes &&
         a.row_header_bytes == b.row_header_bytes && !std::strcmp(a.name, b.name) &&
         std::ranges::equal(type_of(a).fields, type_of(b).fields);
}

// Returns " with the encoder 'ik'", or an empty string for default encoders and decoders.
std::string with_encoder(const ggufmill_kernel& kernel) {
  const std::string name = std::get<std::string>(key_of(kernel));
  return name.empty() ? name : fmt::format(" with the encoder '{}'", name);
}

// Checks one kernel against those before it in its module.
std::string check_among(std::span<const ggufmill_kernel> before, const ggufmill_kernel& kernel) {
  for (const ggufmill_kernel& other : before) {
    if (other.type_id != kernel.type_id) continue;
    if (key_of(other) == key_of(kernel))
      return fmt::format("has two kernels that {} '{}' (type id {}){}",
                         kernel.operation == GGUFMILL_ENCODE ? "encode" : "decode", kernel.name, kernel.type_id,
                         with_encoder(kernel));
    if (!same_type(other, kernel))
      return fmt::format("has kernels of type id {} that do not agree on its name, block and fields", kernel.type_id);
  }
  return {};
}

// Returns null if the type is unknown.
const TypeInfo* find_type(const Types& types, TypeId id) {
  const TypeInfo* type = types.find(id);
  return type ? type : find_source_type(id);
}

// Returns true for a type that this program has no table entry for, so that only a module can define it.
bool is_foreign_type(TypeId id) { return !find_type({}, id); }

// Checks one kernel of a built-in type, or of a type that occurs in sources.
std::string check_type(const ggufmill_kernel& kernel) {
  const TypeInfo* type = find_type({}, kernel.type_id);
  if (!type) return {};
  if (type->name != kernel.name)
    return fmt::format("calls type id {} '{}', but it is '{}'", kernel.type_id, kernel.name, type->name);
  if (kernel.row_header_bytes != 0) return fmt::format("has a row header for '{}', which has none", kernel.name);
  if (type->block_elements != kernel.block_elements || type->block_bytes != kernel.block_bytes)
    return fmt::format("has {} elements in {} bytes for a block of '{}'; expected {} in {}", kernel.block_elements,
                       kernel.block_bytes, kernel.name, type->block_elements, type->block_bytes);
  return {};
}

// Copies the kernels of a module in memory that has passed check_abi().
std::vector<ggufmill_kernel> kernels_in(const ggufmill_module& module) {
  std::vector<ggufmill_kernel> kernels(module.kernel_count);
  const std::size_t bytes = kernel_bytes(module.abi_minor);
  const auto* from = reinterpret_cast<const std::byte*>(module.kernels);
  for (ggufmill_kernel& kernel : kernels) {
    std::memcpy(&kernel, from, bytes);
    from += bytes;
  }
  return kernels;
}

}  // namespace

KernelKey key_of(const ggufmill_kernel& kernel) {
  const std::string_view encoder = kernel.encoder ? kernel.encoder : "";
  return {kernel.operation, kernel.type_id, std::string(encoder == reference_method().name ? "" : encoder)};
}

bool is_foreign_kernel(const ggufmill_kernel& kernel) {
  const std::string encoder = std::get<std::string>(key_of(kernel));
  return is_foreign_type(kernel.type_id) || (!encoder.empty() && encoder != search_method().name);
}

std::string check_abi(const ggufmill_module& module) {
  if (module.magic != GGUFMILL_MAGIC)
    return fmt::format("is not a kernel module: its magic is 0x{:08x}, not 0x{:08x}", module.magic, GGUFMILL_MAGIC);
  if (module.abi_major != GGUFMILL_ABI_MAJOR || module.abi_minor > GGUFMILL_ABI_MINOR)
    return fmt::format("has kernel ABI {}.{}; this program has {}.{}", module.abi_major, module.abi_minor,
                       GGUFMILL_ABI_MAJOR, GGUFMILL_ABI_MINOR);
  if (module.struct_size != sizeof(ggufmill_module))
    return fmt::format("has a module description of {} bytes; ABI {}.{} has {}", module.struct_size, module.abi_major,
                       module.abi_minor, sizeof(ggufmill_module));
  if (module.kernel_size != kernel_bytes(module.abi_minor))
    return fmt::format("has kernel descriptions of {} bytes; ABI {}.{} has {}", module.kernel_size, module.abi_major,
                       module.abi_minor, kernel_bytes(module.abi_minor));
  if (module.kernel_count == 0 || module.kernel_count > kMaxKernels)
    return fmt::format("has {} kernels; 1 to {} are allowed", module.kernel_count, kMaxKernels);
  return {};
}

std::string copy_words(const ggufmill_module& module, ModuleWords& words) {
  const bool good = copy_word(module.name, words.name) && copy_word(module.version, words.version) &&
                    copy_word(module.isa, words.isa) && copy_word(module.cpu_features, words.cpu_features);
  return good ? std::string() : "has no readable name, version, ISA, or CPU features";
}

std::string check_words(const ModuleWords& words, const CpuFeatures& features) {
  if (!is_name(words.name) || !is_printable(words.version) || !is_printable(words.cpu_features))
    return "has a name that is not made of letters, digits, '-', '_', and '.', or unprintable text";
  const Isa* isa = find_isa(words.isa);
  if (!isa) {
    std::vector<std::string_view> known;
    for (const Isa& each : all_isas()) known.push_back(each.name);
    return fmt::format("is for the unknown ISA '{}'; known: {}", words.isa, fmt::join(known, ", "));
  }
  std::vector<std::string> missing = missing_features(isa->cpu_features, features);
  for (std::string& word : missing_features(words.cpu_features, features))
    if (std::find(missing.begin(), missing.end(), word) == missing.end()) missing.push_back(std::move(word));
  if (!missing.empty())
    return fmt::format("needs features that this CPU or system does not support: {}", fmt::join(missing, " "));
  return {};
}

std::string find_place(const ggufmill_kernel& kernel, const ggufmill_module& module, Types& types,
                       KernelOwners& owners) {
  const bool is_registered =
      module.abi_minor >= 1 && kernel.type_id >= GGUFMILL_FIRST_IK_TYPE && kernel.type_id <= GGUFMILL_LAST_IK_TYPE;
  if (kernel.type_id >= GGUFMILL_FIRST_FOREIGN_TYPE || is_registered) {
    const Status added = types.add(type_of(kernel), module.name);
    if (!added) return added.error().what;
  } else if (!find_type(types, kernel.type_id)) {
    return fmt::format("type '{}' (id {}) is unknown to this version; a module's own types have ids from {}",
                       kernel.name, kernel.type_id, GGUFMILL_FIRST_FOREIGN_TYPE);
  }
  KernelKey key = key_of(kernel);
  const std::string encoder = std::get<std::string>(key);
  if (encoder == covariance_method().name)
    return fmt::format("the encoder '{}' is the program's own; another encoder needs another name", encoder);
  const bool is_search = encoder == search_method().name;
  if (is_search && !is_foreign_type(kernel.type_id) && !has_search(*types.find(kernel.type_id)))
    return fmt::format("this version has no search for '{}' to compare with; another encoder needs another name",
                       kernel.name);
  if (is_foreign_kernel(kernel)) {
    const auto [owner, is_new] = owners.emplace(std::move(key), module.name);
    if (owner->second != module.name)
      return fmt::format("the module '{}' {} '{}'{}, and so does the module '{}'", module.name,
                         kernel.operation == GGUFMILL_ENCODE ? "encodes" : "decodes", kernel.name, with_encoder(kernel),
                         owner->second);
  }
  if (!encoder.empty()) types.add_encoder(encoder, kernel.type_id);
  return {};
}

std::string check_kernels(const ggufmill_module& module, Types& types, KernelOwners& owners,
                          std::vector<ggufmill_kernel>& usable, std::vector<std::string>& passed_over) {
  if (!module.kernels) return "has no table of kernels";
  const std::vector<ggufmill_kernel> kernels = kernels_in(module);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::string reason = check_rules(kernels[i]);
    if (reason.empty() && module.abi_minor == 0 && kernels[i].row_header_bytes != 0)
      reason =
          fmt::format("the kernel that {} has a row header, which ABI 1.0 does not have", what_it_does(kernels[i]));
    if (reason.empty()) reason = check_among(std::span(kernels).first(i), kernels[i]);
    if (reason.empty()) reason = check_type(kernels[i]);
    if (!reason.empty()) return reason;
  }
  for (const ggufmill_kernel& kernel : kernels) {
    std::string reason = find_place(kernel, module, types, owners);
    if (reason.empty())
      usable.push_back(kernel);
    else if (std::ranges::find(passed_over, reason) == passed_over.end())
      passed_over.push_back(std::move(reason));
  }
  if (!usable.empty()) return {};
  constexpr std::size_t kMaxNamed = 3;
  const std::size_t named = std::min(passed_over.size(), kMaxNamed), others = passed_over.size() - named;
  std::string reason =
      fmt::format("has no kernel that can be used: {}", fmt::join(std::span(passed_over).first(named), "; "));
  if (others != 0) reason += fmt::format("; and {} more reasons like these", others);
  return reason;
}

}  // namespace ggufmill
