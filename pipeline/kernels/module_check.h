#pragma once
// Checks whether a module is valid and can run here. Every function returns the reason for a refusal as text, or an
// empty string.

#include <string>
#include <vector>

#include "pipeline/core/types.h"
#include "pipeline/kernels/isa.h"
#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/abi/ggufmill_search.h"

namespace ggufmill {

// Copies of the strings of a module: its names and requirements.
struct ModuleWords {
  std::string name;
  std::string version;
  std::string isa;
  std::string cpu_features;
};

// Maximum length of one of these strings in bytes; longer ones are rejected.
inline constexpr std::size_t kMaxWordLength = 1024;

// Returns true for a type that this program has no table entry for, so that only a module can define it.
bool is_foreign_type(TypeId id);

// Reads only the numbers of `module`, which are at the same place in every ABI, and none of its pointers.
std::string check_abi(const ggufmill_module& module);

// Copies the strings of a module that has passed check_abi().
std::string copy_words(const ggufmill_module& module, ModuleWords& words);

// Checks the names, the ISA, and the CPU features that the ISA and the module need.
std::string check_words(const ModuleWords& words, const CpuFeatures& features);

// Checks the kernels of a module in memory that has passed the checks above. Kernels that this host has no place for
// are not added to `usable`, but to `passed_over`, with a line each. Adds the module's foreign types to `types` if all
// checks pass.
std::string check_kernels(const ggufmill_module& module, Types& types, std::vector<const ggufmill_kernel*>& usable,
                          std::vector<std::string>& passed_over);

// Checks the searches of a module in memory. Those of types without a search in this host are not added to `usable`.
std::string check_searches(const ggufmill_search_table& searches, std::vector<const ggufmill_search_kernel*>& usable);

}  // namespace ggufmill
