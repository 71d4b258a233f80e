#pragma once
// Checks whether a module is valid and can run here. Every function returns the reason for a refusal as text, or an
// empty string.

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pipeline/core/types.h"
#include "pipeline/kernels/isa.h"
#include "plugins/abi/ggufmill_kernels.h"

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

// Operation, type, and name of the encoder: empty for decoders and default encoders.
using KernelKey = std::tuple<std::uint32_t, TypeId, std::string>;
KernelKey key_of(const ggufmill_kernel& kernel);

// Returns true if modules alone specify the bytes of the kernel: its type is unknown to the table of this program, or
// it is an encoder that this program does not have.
bool is_foreign_kernel(const ggufmill_kernel& kernel);

// Names of the modules that foreign kernels belong to.
using KernelOwners = std::map<KernelKey, std::string>;

// Reads only the numbers of `module`, which are at the same place in every ABI, and none of its pointers.
std::string check_abi(const ggufmill_module& module);

// Copies the strings of a module that has passed check_abi().
std::string copy_words(const ggufmill_module& module, ModuleWords& words);

// Checks the names, the ISA, and the CPU features that the ISA and the module need.
std::string check_words(const ModuleWords& words, const CpuFeatures& features);

// Returns why this host has no place for an otherwise valid kernel of `module`; adds its type and its encoder to
// `types`, and a foreign kernel to `owners`.
std::string find_place(const ggufmill_kernel& kernel, const ggufmill_module& module, Types& types,
                       KernelOwners& owners);

// Checks the kernels of a module in memory that has passed the checks above, and copies them; members that the module's
// version does not have are 0. Kernels that this host has no place for are not added to `usable`; the reasons are
// added to `passed_over`, each once. Adds the module's types and encoders to
// `types`, and its foreign kernels to `owners`, if all checks pass.
std::string check_kernels(const ggufmill_module& module, Types& types, KernelOwners& owners,
                          std::vector<ggufmill_kernel>& usable, std::vector<std::string>& passed_over);

}  // namespace ggufmill
