#include "pipeline/api/check.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>

#include "pipeline/core/text.h"
#include "pipeline/graph/bind.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/journal/leftovers.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/problems.h"
#include "pipeline/plan/written.h"
#include "stages/quantize/quantize_stage.h"

namespace ggufmill {
namespace {

// Returns the modules here that serve what a module of a plan serves.
std::vector<TypeModule> modules_here(const TypeModule& planned, const Kernels& kernels) {
  const TypeInfo* const type = kernels.types().find(planned.type);
  const EncoderMethod* const method = kernels.types().find_encoder(planned.encoder);
  if (!type || (!planned.encoder.empty() && !method)) return {};
  const ForeignUse use{type, method};
  return kernels.modules_of({&use, 1});
}

std::string name_of_use(const TypeModule& module) {
  return module.encoder.empty() ? fmt::format("type '{}'", module.type)
                                : fmt::format("encoder '{}' of type '{}'", module.encoder, module.type);
}

// Returns the first module that serves something which other modules serve here; null if there is none.
const TypeModule* changed(const std::vector<TypeModule>& modules, const Kernels& kernels) {
  for (const TypeModule& module : modules) {
    std::vector<TypeModule> alike;
    std::ranges::copy_if(modules, std::back_inserter(alike),
                         [&](const TypeModule& other) { return other.serves_the_same(module); });
    if (alike != modules_here(module, kernels)) return &module;
  }
  return nullptr;
}

// Asks the store of the outputs.
void check_space(const Plan& plan, Diagnostics& errors) {
  const std::vector<StoredFile> files = stored_files(plan);
  if (const auto scheme = find_store_scheme(files); scheme)
    scheme.value()->check_space(files, files.empty() ? StoreOptions() : store_options(plan), errors);
  else if (std::ranges::all_of(files, [](const StoredFile& file) { return find_store_scheme(file.path).has_value(); }))
    errors.add(scheme.error());  // outputs without a store are reported by find_problems()
}

void check_memory(const Plan& plan, Diagnostics& errors) {
  if (memory_budget(plan.limits) >= plan.least_memory) return;
  errors.add({ExitCode::kUsage, plan.file,
              fmt::format("limits.memory is {}, but the longest rows that are encoded together need {}",
                          human_bytes(memory_budget(plan.limits)), human_bytes(plan.least_memory)),
              why_least_budget(layouts_of(plan)),
              fmt::format("set limits.memory to {}MiB or more", (plan.least_memory >> 20) + 1)});
}

std::string describe_modules(const std::vector<TypeModule>& modules, const TypeModule& wanted) {
  std::string text;
  for (const TypeModule& module : modules)
    if (module.serves_the_same(wanted))
      text += fmt::format("{}'{} {}' (XXH3 {})", text.empty() ? "" : " and ", module.name, module.version, module.xxh3);
  return text.empty() ? "none" : text;
}

// A plan made on another machine or by an earlier process, with a different kernel module, would yield different bytes
// here.
void check_modules(const Plan& plan, const Kernels& kernels, Diagnostics& errors) {
  if (const TypeModule* module = changed(plan.modules, kernels))
    errors.add({ExitCode::kKernel, "",
                fmt::format("the kernel module for {} is not the one in the plan", name_of_use(*module)),
                fmt::format("in the plan: {}\nhere: {}", describe_modules(plan.modules, *module),
                            describe_modules(modules_here(*module, kernels), *module)),
                "use the same module file on all machines, or recreate the plan"});
}

void check_kernels(const Plan& plan, const Kernels& kernels, Diagnostics& errors) {
  const bool has_problems =
      std::ranges::any_of(plan.outputs, [](const auto& output) { return !output.problems.empty(); });
  const std::vector<StepLayout> layouts = layouts_of(plan);
  const auto bound = bind_kernels(plan, layouts, kernels);  // missing importance is already reported as a problem
  if (!bound && (!has_problems || bound.error().code == ExitCode::kKernel)) errors.add(bound.error());
  check_modules(plan, kernels, errors);
}

}  // namespace

Status check_measured(const Job& job, const Kernels& kernels) {
  for (const JobOutput& output : job.outputs)
    for (const auto& stage : output.stages) {
      const TargetOptions* target = target_of(*stage);
      if (!target || !target->measurement) continue;
      const std::vector<TypeModule>& measured = target->measurement->modules;
      const TypeModule* const other = changed(measured, kernels);
      std::string use = other ? name_of_use(*other) : "";
      std::vector<ForeignUse> candidates;
      for (const TypeInfo* type : target->candidates) candidates.push_back({type});
      for (const TypeModule& module : kernels.modules_of(candidates))
        if (use.empty() && std::ranges::count(measured, module) == 0) use = name_of_use(module);
      if (!use.empty())
        return error_at(target->origin, fmt::format("{} was measured with another kernel module", use),
                        "measure again with `ggufmill measure`");
    }
  return ok();
}

void look_at_sources(Plan& plan) {
  plan.inode_times.clear();
  for (const SourceRef& source : plan.sources) plan.inode_times.push_back(inode_time(source->path));
}

void check_plan(const Plan& plan, const Kernels& kernels, Diagnostics& errors) {
  find_problems(plan, kernels.files(), errors);
  check_kernels(plan, kernels, errors);
}

void check_run(const Plan& plan, const Kernels& kernels, bool overwrite, Diagnostics& errors) {
  find_problems(plan, kernels.files(), overwrite, orphaned_manifests(plan), errors);
  check_kernels(plan, kernels, errors);
  for (Error& error : claimed_by_jobs(find_leftovers(plan))) errors.add(std::move(error));
  check_space(plan, errors);
  check_memory(plan, errors);
}

}  // namespace ggufmill
