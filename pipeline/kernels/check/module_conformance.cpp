#include "pipeline/kernels/check/module_conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/finite.h"
#include "pipeline/kernels/module_set.h"

extern "C" const ggufmill_module ggufmill_reference_module;

namespace ggufmill {
namespace {

using namespace conformance;

// Returns the module that is loaded from a path.
Result<const LoadedModule*> load(const std::string& path, ModuleSet& set) {
  set.add_file(path);
  const ModuleReport& report = set.reports().back();
  if (report.loaded) return &set.modules().back();
  return Error{ExitCode::kKernel, path, "the kernel module is refused: " + report.refusal, "", ""};
}

}  // namespace

std::size_t ModuleConformance::count(Finding::Kind kind) const {
  const auto kind_of = [](const ConformanceResult& result) { return result.finding.kind; };
  return static_cast<std::size_t>(std::ranges::count(results, kind, kind_of));
}

Result<ModuleConformance> check_module(const ConformanceOptions& options) {
  ModuleSet tested(cpu_features()), reference(cpu_features());
  BOOST_OUTCOME_TRY(const LoadedModule* module, load(options.module, tested));
  KernelList expected = kernels_of(ggufmill_reference_module);
  if (!options.reference.empty()) {
    BOOST_OUTCOME_TRY(const LoadedModule* other, load(options.reference, reference));
    expected = other->kernels;
  }
  CheckOptions checks{options.types, options.stop, {}, {}};
  checks.scales_of = [&](const ggufmill_kernel& kernel) -> decltype(Subject::scales_are_finite) {
    const TypeInfo* const type = tested.types().find(kernel.type_id);
    if (!type || !type->has_scales()) return {};
    return [type](std::span<const std::byte> rows, std::uint64_t cols) {
      return next_bad_block(*type, cols, rows) == rows.size() / row_bytes(*type, cols) * (cols / type->block_elements);
    };
  };
  std::vector<std::string> collisions(module->kernels.size());
  if (options.loaded) collisions = options.loaded->collisions(*module->module, module->kernels);
  checks.collision_of = [&](const ggufmill_kernel& kernel) {
    return collisions[static_cast<std::size_t>(&kernel - module->kernels.data())];
  };
  ModuleConformance conformance{tested.reports().back(), check_kernels(module->kernels, expected, checks), {}};
  if (options.times) conformance.times = time_kernels(module->kernels, expected, checks);
  if (options.stop && *options.stop) return Error{ExitCode::kInterrupted, "", "interrupted", "", ""};
  if (conformance.results.empty())
    return Error{ExitCode::kKernel, options.module,
                 fmt::format("the module has no kernel of {}", fmt::join(options.types, ", ")), "",
                 "`ggufmill kernels` lists the types"};
  return conformance;
}

}  // namespace ggufmill
