#include "pipeline/kernels/module_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <span>

#include "pipeline/core/encoder.h"
#include "pipeline/core/types.h"

namespace ggufmill {
namespace {

constexpr std::uint32_t kMaxKernels = 4096;    // and searches
constexpr std::uint32_t kMaxRowHeader = 4096;  // bytes
constexpr std::uint32_t kKnownFlags = GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE;

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
  return {};
}

bool same_block(const ggufmill_kernel& a, const ggufmill_kernel& b) {
  return a.block_elements == b.block_elements && a.block_bytes == b.block_bytes &&
         a.row_header_bytes == b.row_header_bytes && !std::strcmp(a.name, b.name);
}

// Checks one kernel against those before it in its module.
std::string check_among(std::span<const ggufmill_kernel> before, const ggufmill_kernel& kernel) {
  for (const ggufmill_kernel& other : before) {
    if (other.type_id != kernel.type_id) continue;
    if (other.operation == kernel.operation)
      return fmt::format("has two kernels that {} '{}' (type id {})",
                         kernel.operation == GGUFMILL_ENCODE ? "encode" : "decode", kernel.name, kernel.type_id);
    if (!same_block(other, kernel))
      return fmt::format("has kernels of type id {} that do not agree on its name and block", kernel.type_id);
  }
  return {};
}

// Returns null if the type is unknown.
const TypeInfo* find_type(const Types& types, TypeId id) {
  const TypeInfo* type = types.find(id);
  return type ? type : find_source_type(id);
}

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

// Returns why this host has no place for an otherwise valid kernel, or an empty string; adds its type if it is foreign.
std::string find_place(const ggufmill_kernel& kernel, const ggufmill_module& module, Types& types) {
  const bool is_registered =
      module.abi_minor >= 1 && kernel.type_id >= GGUFMILL_FIRST_IK_TYPE && kernel.type_id <= GGUFMILL_LAST_IK_TYPE;
  if (kernel.type_id >= GGUFMILL_FIRST_FOREIGN_TYPE || is_registered) {
    const Status added = types.add(kernel.type_id, kernel.name, kernel.block_elements, kernel.block_bytes, module.name,
                                   kernel.row_header_bytes);
    return added ? std::string() : added.error().what;
  }
  if (find_type(types, kernel.type_id)) return {};
  return fmt::format("type '{}' (id {}) is unknown to this version; a module's own types have ids from {}", kernel.name,
                     kernel.type_id, GGUFMILL_FIRST_FOREIGN_TYPE);
}

}  // namespace

bool is_foreign_type(TypeId id) { return !find_type({}, id); }

std::string check_abi(const ggufmill_module& module) {
  if (module.magic != GGUFMILL_MAGIC)
    return fmt::format("is not a kernel module: its magic is 0x{:08x}, not 0x{:08x}", module.magic, GGUFMILL_MAGIC);
  if (module.abi_major != GGUFMILL_ABI_MAJOR || module.abi_minor > GGUFMILL_ABI_MINOR)
    return fmt::format("has kernel ABI {}.{}; this program has {}.{}", module.abi_major, module.abi_minor,
                       GGUFMILL_ABI_MAJOR, GGUFMILL_ABI_MINOR);
  if (module.struct_size != sizeof(ggufmill_module))
    return fmt::format("has a module description of {} bytes; ABI {}.{} has {}", module.struct_size, module.abi_major,
                       module.abi_minor, sizeof(ggufmill_module));
  if (module.kernel_size != sizeof(ggufmill_kernel))
    return fmt::format("has kernel descriptions of {} bytes; ABI {}.{} has {}", module.kernel_size, module.abi_major,
                       module.abi_minor, sizeof(ggufmill_kernel));
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

std::string check_kernels(const ggufmill_module& module, Types& types, std::vector<const ggufmill_kernel*>& usable,
                          std::vector<std::string>& passed_over) {
  if (!module.kernels) return "has no table of kernels";
  const std::span<const ggufmill_kernel> kernels(module.kernels, module.kernel_count);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::string reason = check_rules(kernels[i]);
    if (reason.empty() && module.abi_minor == 0 && kernels[i].row_header_bytes != 0)
      reason =
          fmt::format("the kernel that {} has a row header, which ABI 1.0 does not have", what_it_does(kernels[i]));
    if (reason.empty()) reason = check_among(kernels.first(i), kernels[i]);
    if (reason.empty()) reason = check_type(kernels[i]);
    if (!reason.empty()) return reason;
  }
  for (const ggufmill_kernel& kernel : kernels) {
    std::string reason = find_place(kernel, module, types);
    if (reason.empty())
      usable.push_back(&kernel);
    else
      passed_over.push_back(std::move(reason));
  }
  return usable.empty() ? "has no kernel for a type that this program supports" : std::string();
}

std::string check_searches(const ggufmill_search_table& searches, std::vector<const ggufmill_search_kernel*>& usable) {
  if (searches.struct_size != sizeof(ggufmill_search_table) || searches.kernel_size != sizeof(ggufmill_search_kernel))
    return fmt::format("has a table of searches of {} bytes with {} each; this program has {} with {}",
                       searches.struct_size, searches.kernel_size, sizeof(ggufmill_search_table),
                       sizeof(ggufmill_search_kernel));
  if (searches.count > kMaxKernels)
    return fmt::format("has {} searches; at most {} are allowed", searches.count, kMaxKernels);
  if (searches.count != 0 && !searches.kernels) return "has no table of searches";
  const std::span<const ggufmill_search_kernel> kernels(searches.kernels, searches.count);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const ggufmill_search_kernel& kernel = kernels[i];
    if (kernel.reserved != 0 || !kernel.run)
      return fmt::format("the search of type id {} has no function or unknown flags", kernel.type_id);
    if (std::ranges::count(kernels.first(i), kernel.type_id, &ggufmill_search_kernel::type_id) != 0)
      return fmt::format("has two searches of type id {}", kernel.type_id);
    const TypeInfo* type = find_type({}, kernel.type_id);
    if (type && has_search(*type)) usable.push_back(&kernel);
  }
  return {};
}

}  // namespace ggufmill
