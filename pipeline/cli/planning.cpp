#include "pipeline/cli/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/api/registry.h"
#include "pipeline/cli/reporting.h"
#include "pipeline/io/machine.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using Strings = std::vector<std::string>;

void say_warnings(const Plan& plan) {
  for (const std::string& warning : plan.source.warnings) say_warning(warning);
  for (const PlannedOutput& output : plan.outputs)  // a stage's warnings come after the source's
    for (std::size_t i = plan.source.warnings.size(); i < output.model.warnings.size(); ++i)
      say_warning(output.model.warnings[i]);
}

// Kernels come first: they may bring types that the files name.
std::optional<Planned> plan_job(const po::variables_map& values, const std::function<std::optional<Job>()>& load,
                                Diagnostics& errors) {
  Planned planned;
  auto kernels = Kernels::load({value_or<Strings>(values, "kernel-dir", {}), value_or<std::string>(values, "isa", {})});
  if (!kernels) {
    errors.add(kernels.error());
    return {};
  }
  planned.kernels = std::move(kernels).value();
  auto job = load();
  if (!job) return {};
  planned.job = std::move(*job);
  if (const Status read = read_report_options(values, planned.job.report); !read) {
    errors.add(read.error());
    return {};
  }
  Limits& limits = planned.job.limits;
  if (!limits.memory_is_given) limits.memory = std::min(limits.memory, usable_memory() / 4);
  auto plan = make_plan(planned.job, errors);
  if (!plan) return {};
  planned.plan = std::move(*plan);
  say_warnings(planned.plan);
  return planned;
}

}  // namespace

void add_kernel_options(po::options_description& options) {
  options.add_options()("kernel-dir", po::value<Strings>()->composing(), "a folder with further kernel modules");
  options.add_options()("isa", po::value<std::string>(),
                        "use the kernels of this ISA only; `ggufmill kernels` lists them");
}

void add_job_options(po::options_description& options) {
  options.add_options()("set", po::value<Strings>()->composing(), "override a value: outputs.0.gguf=out/a.gguf");
  options.add_options()("param", po::value<Strings>()->composing(), "give a declared parameter its value: NAME=value");
  add_kernel_options(options);
}

std::optional<Planned> plan_from(const po::variables_map& values, Diagnostics& errors) {
  const JobOptions options{value_or<Strings>(values, "set", {}), value_or<Strings>(values, "param", {})};
  return plan_job(
      values, [&] { return load_job(values["file"].as<std::string>(), registry(), options, errors); }, errors);
}

std::optional<Planned> plan_text(const std::string& text, const std::string& name, const po::variables_map& values,
                                 Diagnostics& errors) {
  return plan_job(
      values, [&] { return parse_job(text, name, registry(), {}, errors); }, errors);
}

std::uint64_t weights_of(const Model& model) {
  std::uint64_t elements = 0;
  for (const Tensor& tensor : model.tensors) elements += tensor.shape.elements();
  return elements;
}

}  // namespace ggufmill
