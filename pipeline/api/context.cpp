#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/check.h"
#include "pipeline/api/context.h"
#include "pipeline/api/job_steps.h"
#include "pipeline/api/open_model.h"
#include "pipeline/api/registry.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/reuse.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace {

// Returns the value, or the errors if there is none.
template <class T>
Result<T> value_or_errors(std::optional<T> value, const Diagnostics& errors) {
  if (!value) return errors.together();
  return std::move(*value);
}

Status place_steps(Job& job) {
  BOOST_OUTCOME_TRY(place_computed_importance(job));
  return check_steps_are_built(job);
}

Result<Batch> settled(std::optional<Batch> batch, Diagnostics& errors) {
  if (batch)
    for (BatchJob& each : batch->jobs)
      if (const Status placed = place_steps(each.job); !placed) errors.add(placed.error());
  if (!errors.empty()) return errors.together();
  return std::move(*batch);
}

Result<Job> settled(std::optional<Job> job, Diagnostics& errors) {
  if (job)
    if (const Status placed = place_steps(*job); !placed) errors.add(placed.error());
  if (!errors.empty()) return errors.together();
  return std::move(*job);
}

// Fails if `path` names a model rather than a pipeline file.
Status refuse_model(const std::string& path) {
  const bool is_checkpoint = is_folder(path);
  if (!is_checkpoint && !is_address(path) && !path.ends_with(".gguf") && !path.ends_with(".safetensors")) return ok();
  return Error{
      ExitCode::kUsage, path, fmt::format("this is a {}, not a pipeline file", is_checkpoint ? "folder" : "model"), "",
      fmt::format("`ggufmill quantize {0} TYPE` quantizes it, and `ggufmill quantize --emit-pipeline {0} TYPE` "
                  "prints a pipeline file to start from",
                  path)};
}

}  // namespace

Result<Context> Context::create(const KernelOptions& options, std::vector<std::string> maps) {
  BOOST_OUTCOME_TRY(auto kernels, Kernels::load(options));
  const OpenedFiles opened;
  if (!maps.empty()) {
    BOOST_OUTCOME_TRY(huggingface::AddedMaps::read(huggingface::map_places(maps)));
  }
  return Context(std::move(kernels), options, std::move(maps), opened.paths());
}

Context::Context(std::shared_ptr<const Kernels> kernels, KernelOptions kernel_options, std::vector<std::string> maps,
                 std::vector<std::string> map_files)
    : kernel_options_(std::move(kernel_options)),
      maps_(std::move(maps)),
      map_files_(std::move(map_files)),
      kernels_(std::move(kernels)),
      registry_(std::make_shared<const Registry>(make_registry(kernels_->types(), maps_))) {}

Result<Model> Context::inspect(const std::string& path, OutType out_type) const {
  return open_model(path, {{"outtype", std::string(out_type_name(out_type))}}, registry());
}

RecipeCatalog Context::recipes() const { return RecipeCatalog(registry().types); }

Result<Job> Context::load_job(const std::string& path, const JobOptions& options) const {
  BOOST_OUTCOME_TRY(refuse_model(path));
  Diagnostics errors;
  return settled(ggufmill::load_job(path, registry(), options, errors), errors);
}

Result<Job> Context::parse_job(const std::string& text, const std::string& name, const JobOptions& options) const {
  Diagnostics errors;
  return settled(ggufmill::parse_job(text, name, registry(), options, errors), errors);
}

Result<Batch> Context::load_batch(const std::string& path, const JobOptions& options) const {
  BOOST_OUTCOME_TRY(refuse_model(path));
  Diagnostics errors;
  return settled(ggufmill::load_batch(path, registry(), options, errors), errors);
}

Result<Batch> Context::parse_batch(const std::string& text, const std::string& name, const JobOptions& options) const {
  Diagnostics errors;
  return settled(ggufmill::parse_batch(text, name, registry(), options, errors), errors);
}

Status Context::convert_rows(const RowConversion& conversion, const RowsOptions& options) const {
  return ggufmill::convert_rows(conversion, kernels(), options);
}

Status Context::choose_levels(const LevelChoice& choice, const RowsOptions& options) const {
  return ggufmill::choose_levels(choice, kernels(), options);
}

Status Context::read_rows(const RowsOfTensor& wanted, const RowsOptions& options) const {
  return ggufmill::read_rows(wanted, kernels(), options);
}

namespace {

// Adds what planning has read to the other inputs: the configuration and tokenizer of a checkpoint, architecture maps,
// and so on. No output may replace any of it.
void add_opened(const OpenedFiles& opened, Plan& plan) {
  const std::vector<std::string> known = plan.input_paths();
  for (const std::string& path : opened.paths())
    if (std::ranges::count(known, path) == 0) plan.other_inputs.push_back(path);
}

}  // namespace

Result<Plan> Context::plan(const Job& planned) const {
  const bool all_sinks =
      std::all_of(planned.outputs.begin(), planned.outputs.end(), [](const auto& it) { return it.sink; });
  if (!planned.source || planned.outputs.empty() || !all_sinks)
    return usage_error("the job has no source, no outputs, or an output without a sink",
                       "give the Job a source and at least one output, each with a sink");
  const Job job = with_recalled(*this, planned);
  BOOST_OUTCOME_TRY(check_measured(job, kernels()));
  Diagnostics errors;
  const OpenedFiles opened;
  Result<Plan> plan = value_or_errors(make_plan(job, errors), errors);
  if (plan) {
    add_opened(opened, plan.value());
    plan.value().modules = kernels().modules_of(foreign_uses_of(plan.value()));
    look_at_sources(plan.value());
  }
  for (std::size_t i = 0; plan && i < job.outputs.size(); ++i)
    if (!job.outputs[i].reuse.empty()) {
      BOOST_OUTCOME_TRY(reuse_earlier(plan.value(), i, job.outputs[i].reuse));
    }
  if (plan) look_at_sources(plan.value());  // now including the sources of reused tensors
  return plan;
}

bool Context::has_read_maps(const Plan& plan) const {
  const std::vector<std::string> inputs = plan.input_paths();
  return std::ranges::find_first_of(inputs, map_files_) != inputs.end();
}

Result<std::vector<std::string>> Context::inputs(const Job& job) const {
  const OpenedFiles opened;
  BOOST_OUTCOME_TRY(const Model model, shared_model(job));
  std::vector<std::string> paths = other_inputs(job);
  paths.insert(paths.end(), opened.paths().begin(), opened.paths().end());
  for (const SourceRef& source : make_check(model, job.limits).sources) paths.push_back(source->path);
  return paths;
}

Status Context::check_written(const WrittenPath& written, std::vector<std::string> read, bool overwrite) const {
  const std::vector<std::string> modules = kernels().files();
  read.insert(read.end(), modules.begin(), modules.end());
  return ggufmill::check_written(written, read, overwrite);
}

std::vector<Error> Context::problems(const Plan& plan) const {
  Diagnostics errors;
  check_plan(plan, kernels(), errors);
  return errors.errors();
}

std::vector<Error> Context::check(const Plan& plan, bool overwrite) const {
  Diagnostics errors;
  check_run(plan, kernels(), overwrite || leftovers(plan).is_half_published, errors);
  return errors.errors();
}

}  // namespace ggufmill
