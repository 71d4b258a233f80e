#pragma once
// Ranks loaded modules and chooses a kernel for every operation and type. Pure.

#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "pipeline/kernels/module_set.h"

namespace ggufmill {

using KernelKey = std::pair<std::uint32_t, TypeId>;  // operation, type
struct Chosen {
  KernelChoice choice;
  std::size_t report = 0;  // of the module
};
using KernelTable = std::map<KernelKey, Chosen>;

// Best first: by the rank of the ISA, then in the order found, the linked-in reference last.
std::vector<const LoadedModule*> ranked(std::span<const LoadedModule> modules);

// `isa` forced or empty; the rules are those of kernels.h.
KernelTable choose(std::span<const LoadedModule> modules, std::string_view isa);

}  // namespace ggufmill
