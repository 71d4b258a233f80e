#pragma once
// Is a module what it says, and can it run here? Every answer is a reason for a refusal in words, or empty.

#include <string>
#include <vector>

#include "pipeline/core/types.h"
#include "pipeline/kernels/isa.h"
#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill {

// The words of a module, copied: what it is called and what it needs.
struct ModuleWords {
  std::string name;
  std::string version;
  std::string isa;
  std::string cpu_features;
};

// The most bytes of one of these words; what is longer is no word.
inline constexpr std::size_t kLongestWord = 1024;

// Reads `module`'s numbers only, which lie at the same place in every ABI; none of its pointers.
std::string check_abi(const ggufmill_module& module);

// Of a module that check_abi() found good.
std::string copy_words(const ggufmill_module& module, ModuleWords& words);

// Names, the ISA, and the CPU features that the ISA and the module need.
std::string check_words(const ModuleWords& words, const CpuFeatures& features);

// The kernels of a module in memory whose ABI and words are good. Those that this host has no place for are not in
// `usable`, each with a line in `passed_over`. Adds the module's foreign types to `types` when all is well.
std::string check_kernels(const ggufmill_module& module, Types& types, std::vector<const ggufmill_kernel*>& usable,
                          std::vector<std::string>& passed_over);

}  // namespace ggufmill
