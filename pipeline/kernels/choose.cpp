#include "pipeline/kernels/choose.h"

#include <algorithm>
#include <tuple>

namespace ggufmill {
namespace {

void choose_from(const LoadedModule& module, bool foreign_alone, KernelTable& table) {
  for (const ggufmill_kernel* kernel : module.kernels)
    if (!foreign_alone || kernel->type_id >= GGUFMILL_FIRST_FOREIGN_TYPE)
      table.try_emplace({kernel->operation, kernel->type_id}, Chosen{{kernel, module.module}, module.report});
}

}  // namespace

std::vector<const LoadedModule*> ranked(std::span<const LoadedModule> modules) {
  std::vector<const LoadedModule*> order;
  for (const LoadedModule& module : modules) order.push_back(&module);
  auto merit = [](const LoadedModule* module) { return std::tuple(module->isa->rank, module->library != nullptr); };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return merit(a) > merit(b); });
  return order;
}

KernelTable choose(std::span<const LoadedModule> modules, std::string_view isa) {
  const std::vector<const LoadedModule*> order = ranked(modules);
  KernelTable table;
  for (const LoadedModule* module : order)
    if (isa.empty() || module->isa->name == isa) choose_from(*module, false, table);
  for (const LoadedModule* module : order) choose_from(*module, true, table);
  return table;
}

}  // namespace ggufmill
