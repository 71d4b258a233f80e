#include "pipeline/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "pipeline/core/covariance.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/rows.h"
#include "pipeline/core/text.h"
#include "pipeline/io/machine.h"
#include "pipeline/plan/step_layout.h"
#include "pipeline/plan/step_maker.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

Result<Model> apply_all(Model model, std::span<const StageList::value_type> stages) {
  for (const auto& stage : stages) {
    BOOST_OUTCOME_TRY(model, stage->apply(std::move(model)));
  }
  return model;
}

// Names the part of the checkpoint whose model the error is about, if an output asks for one.
Error of_part(Error error, const PartRequest& request) {
  if (!request.part) return error;
  error.what = fmt::format("part '{}': {}", part_name(*request.part), error.what);
  for (Error& other : error.also) other = of_part(std::move(other), request);
  return error;
}

std::string text_of(const Metadata& metadata, const char* key) {
  const MetadataValue* value = metadata.find(key);
  return value ? std::string(as_string(*value).value_or("")) : "";
}

PlannedSource::Use use_of(const Metadata& metadata, const std::string& architecture) {
  if (text_of(metadata, "general.type") == "adapter") return PlannedSource::Use::kAdapter;
  const MetadataValue* const pooling = metadata.find(architecture + ".pooling_type");
  return pooling && as_unsigned(*pooling).value_or(0) != 0 ? PlannedSource::Use::kEmbedding : PlannedSource::Use::kText;
}

// Describes the models opened from a source. Its name is that of the first.
PlannedSource describe_source(std::span<const Model> models) {
  PlannedSource source;
  source.name = text_of(models.front().metadata, "general.name");
  source.architecture = text_of(models.front().metadata, "general.architecture");
  source.use = use_of(models.front().metadata, source.architecture);
  for (const Model& model : models) {
    for (const SourceRef& file : model.files)
      if (std::ranges::count(source.files, file) == 0) source.files.push_back(file);
    if (source.parts.empty()) source.parts = parts_of(model);
    source.tensors += model.tensors.size();
    for (const Tensor& tensor : model.tensors) {
      source.weights += tensor.shape().elements();
      source.bytes += tensor.source_bytes();
    }
  }
  return source;
}

std::size_t count_adapters(const Expression& expression) {
  std::size_t adapters = expression.operation == Operation::kLowRank ? expression.scales.size() : 0;
  for (const ExpressionRef& input : expression.inputs) adapters += count_adapters(*input);
  return adapters;
}

// Returns the values of both tensors of a pair, with separated rows.
ExpressionRef plain_values_of(const Tensor& tensor) { return expressions::plain_rows(tensor.expression).value(); }

// Returns the rule that decided the type, how many adapters are merged, the encoder if one was asked for, and where
// importance comes from that the tensor's own data does not contain.
std::string why_of(const Tensor& tensor) {
  std::string why = tensor.reason;
  const auto add = [&](const std::string& more) { why += (why.empty() ? "" : "; ") + more; };
  if (const std::size_t adapters = count_adapters(*tensor.expression); adapters != 0)
    add(counted(adapters, "adapter") + " merged");
  if (!tensor.encoder.is_reference() && tensor.converted() && tensor.type->is_quantized()) {
    const Encoder encoder = used_encoder(tensor);
    const EncoderMethod& asked = *tensor.encoder.method;
    const bool is_without = tensor.encoder.is_covariance() && has_method(asked, *tensor.type) && !tensor.covariance;
    add(describe(encoder) + (is_without ? ": no covariance of its inputs"
                             : has_method(asked, *tensor.type)
                                 ? ""
                                 : fmt::format(": {} has no {}", tensor.type->name, noun_of(asked))));
    if (encoder.is_covariance() && !tensor.covariance->note.empty()) add(tensor.covariance->note);
  }
  if (tensor.importance && tensor.converted() && !tensor.importance->note.empty()) add(tensor.importance->note);
  return why;
}

PlannedTensor describe_tensor(const Tensor& tensor) {
  return {tensor.name,           tensor.shape(),
          &tensor.source_type(), tensor.type,
          tensor.source_bytes(), bytes_of(*tensor.type, tensor.shape()).value(),
          why_of(tensor),        tensor.importance != nullptr,
          tensor.fallback_from};
}

// The result of an output's stages, until its model is freed.
struct LaidOut {
  Model model;
  std::vector<OutputFile> files;
};

Result<LaidOut> lay_out_once(Model model, std::span<const StageList::value_type> stages, const Sink& sink) {
  LaidOut laid;
  BOOST_OUTCOME_TRY(model, apply_all(std::move(model), stages));
  BOOST_OUTCOME_TRY(laid.model, sink.adapt(std::move(model)));
  BOOST_OUTCOME_TRY(laid.files, sink.layout(laid.model));
  return laid;
}

// Returns the bytes of the files that are neither tensors nor their padding.
std::uint64_t other_bytes(const LaidOut& laid, std::uint64_t alignment) {
  std::uint64_t bytes = 0;
  for (const OutputFile& file : laid.files) bytes += file.bytes;
  return bytes - std::min(bytes, padded_bytes(laid.model, alignment));
}

// A stage that fills a size needs the size of the headers, which depends on all stages and on the sink, but not on the
// types that it chooses, except for the encoders that the metadata names. The stages before it are applied once; from
// it on, the output is laid out first without a choice, and then until the headers are no larger than assumed.
Result<LaidOut> lay_out(Model shared, const JobOutput& output) {
  const std::span stages(output.stages);
  const auto filling = std::ranges::find_if(stages, [](const auto& stage) { return stage->as_target() != nullptr; });
  const auto before = stages.first(static_cast<std::size_t>(filling - stages.begin()));
  const auto rest = stages.subspan(before.size());
  if (rest.empty()) return lay_out_once(std::move(shared), before, *output.sink);
  BOOST_OUTCOME_TRY(Model model, apply_all(std::move(shared), before));
  model.notes.set(notes::kOnlyHeaders, true);
  BOOST_OUTCOME_TRY(LaidOut laid, lay_out_once(model, rest, *output.sink));
  const std::uint64_t alignment = output.sink->tensor_alignment(laid.model);
  model.notes.set(notes::kOnlyHeaders, false);
  model.notes.set(notes::kTensorAlignment, alignment);
  for (std::uint64_t assumed = other_bytes(laid, alignment);;) {
    model.notes.set(notes::kOtherBytes, assumed);
    BOOST_OUTCOME_TRY(laid, lay_out_once(model, rest, *output.sink));
    const std::uint64_t others = other_bytes(laid, alignment);
    if (others <= assumed) return laid;
    assumed = others;
  }
}

// If no paths are given, reports are written next to the first output, whose names end with `extension`.
ReportRequest with_paths(ReportRequest report, const std::vector<PlannedOutput>& outputs, std::string_view extension) {
  if (!report.json.empty() || !report.html.empty() || outputs.empty() || outputs[0].files.empty()) return report;
  std::string stem = outputs[0].files[0].path;
  if (stem.ends_with(extension)) stem.resize(stem.size() - extension.size());
  report.json = stem + ".report.json";
  report.html = stem + ".report.html";
  return report;
}

// The models that a job's outputs ask of the source, without duplicates.
class Requests {
 public:
  explicit Requests(const Job& job) {
    for (const JobOutput& output : job.outputs) {
      const PartRequest request = output.request();
      const auto known =
          std::ranges::find_if(distinct_, [&](const PartRequest& other) { return other.is_same_model(request); });
      of_output_.push_back(static_cast<std::size_t>(known - distinct_.begin()));
      if (known == distinct_.end()) distinct_.push_back(request);
    }
  }

  std::span<const PartRequest> distinct() const { return distinct_; }
  // Returns the number of the output's request.
  std::size_t of_output(std::size_t output) const { return of_output_[output]; }

 private:
  std::vector<PartRequest> distinct_;
  std::vector<std::size_t> of_output_;
};

class PlanMaker {
 public:
  explicit PlanMaker(std::span<const Model> source) : steps_(source) { plan_.source = describe_source(source); }

  void add_output(LaidOut laid, const JobOutput& from) {
    const auto index = static_cast<std::uint32_t>(plan_.outputs.size());
    for (std::uint32_t f = 0; f < laid.files.size(); ++f)
      for (const Placement& placement : laid.files[f].tensors)
        steps_.add(laid.model.tensors[placement.tensor], {index, f, placement.tensor, placement.offset},
                   placement.bytes, laid.files[f].big_endian);
    PlannedOutput& output = plan_.outputs.emplace_back();
    output.origin = from.origin;
    output.part = from.part;
    output.recipe = laid.model.notes.get(notes::kRecipe);
    output.choice = laid.model.notes.get(notes::kChoice);
    output.tensors.reserve(laid.model.tensors.size());
    for (const Tensor& tensor : laid.model.tensors) output.tensors.push_back(describe_tensor(tensor));
    output.files = std::move(laid.files);
    output.problems = std::move(laid.model.problems);
    add_warnings(laid.model);
  }

  // Adds each warning once: the model of every output repeats the warnings of the shared stages.
  void add_warnings(const Model& model) {
    for (const std::string& warning : model.warnings)
      if (warnings_.insert(warning).second) plan_.warnings.push_back(warning);
  }

  std::optional<Plan> finish(const Job& job, Diagnostics& errors) {
    plan_.file = job.file;
    plan_.other_inputs = other_inputs(job);
    plan_.trace = job.trace;
    plan_.limits = job.limits;
    plan_.manifest = job.manifest;
    plan_.verify = job.verify;
    plan_.nonfinite = job.nonfinite;
    if (job.report) plan_.report = with_paths(*job.report, plan_.outputs, job.outputs.front().sink->extension());
    plan_.steps = steps_.take();
    if (const Status proof = prove_steps(plan_.steps, steps_.wanted()); !proof) {
      errors.add(proof.error());
      return {};
    }
    if (plan_.bytes_read() > kMaxPlanBytes) {
      errors.add(input_error(
          plan_.source.files.empty() ? job.file : plan_.source.files.front()->path,
          fmt::format("the model claims {} bytes of tensors; the limit is {}", plan_.bytes_read(), kMaxPlanBytes)));
      return {};
    }
    finish_plan(plan_);
    return std::move(plan_);
  }

 private:
  Plan plan_;
  StepMaker steps_;
  std::unordered_set<std::string> warnings_;
};

// Divides the rows of a step, in whole groups, into as few units of at most kUnitBytes as possible, all about equal in
// size. If matrices end within a group, whole matrices are the groups.
void add_units(const Plan& plan, std::size_t index, std::vector<Unit>& units) {
  const Expression& expression = *plan.steps[index].expression;
  const std::uint64_t rows = expression.shape.rows(), matrix = expression.shape.dims[1];
  std::uint64_t group = group_rows_of(plan.steps[index]);
  if (rows != matrix && matrix % group != 0) group = matrix;
  const std::uint64_t groups = ceil_div(rows, group);
  const std::uint64_t group_bytes = std::max<std::uint64_t>(capped_product(expression.row_bytes(), group), 1);
  const std::uint64_t most = std::max<std::uint64_t>(kUnitBytes / group_bytes, 1);
  const std::uint64_t count = (groups + most - 1) / most;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t each = groups / count, longer = groups % count;
    const std::uint64_t first = (i * each + std::min(i, longer)) * group;
    units.push_back({index, first, std::min((each + (i < longer)) * group, rows - first)});
  }
}

void add_importance(const std::shared_ptr<const Importance>& importance, std::vector<SourceRef>& sources) {
  if (!importance) return;
  for (const ImportanceShare& share : importance->shares)
    if (std::ranges::count(sources, share.sums.source) == 0) sources.push_back(share.sums.source);
}

void add_covariance(const std::shared_ptr<const Covariance>& covariance, std::vector<SourceRef>& sources) {
  if (!covariance) return;
  for (const Extent* extent : {&covariance->sums, &covariance->correlations, &covariance->vectors})
    if (extent->source && std::ranges::count(sources, extent->source) == 0) sources.push_back(extent->source);
}

}  // namespace

std::vector<std::string> other_inputs(const Job& job) {
  std::vector<std::string> paths = job.inputs;
  const auto add = [&](const auto& part) {
    const std::vector<std::string> more = part->inputs();
    paths.insert(paths.end(), more.begin(), more.end());
  };
  std::ranges::for_each(job.stages, add);
  for (const JobOutput& output : job.outputs) {
    std::ranges::for_each(output.stages, add);
    add(output.sink);
  }
  return paths;
}

std::uint64_t Plan::bytes_read() const {
  std::uint64_t bytes = 0;
  for (const Step& step : steps)
    bytes = capped_sum(bytes, capped_sum(step.expression->bytes(), step.compared ? step.compared->bytes() : 0));
  return bytes;
}

std::uint64_t Plan::bytes_written() const {
  std::uint64_t bytes = 0;
  for (const PlannedOutput& output : outputs)
    for (const OutputFile& written : output.files) bytes += written.bytes;
  return bytes;
}

std::vector<std::string> Plan::input_paths() const {
  std::vector<std::string> paths = other_inputs;
  for (const SourceRef& each : sources) paths.push_back(each->path);
  return paths;
}

std::vector<StoredFile> stored_files(const Plan& plan) {
  std::vector<StoredFile> files;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) files.push_back({file.path, file.header, file.bytes});
  return files;
}

std::vector<PlannedWrite> planned_writes(const Plan& plan, std::size_t first, std::size_t last) {
  std::vector<std::size_t> first_files;
  std::size_t files = 0;
  for (const PlannedOutput& output : plan.outputs) {
    first_files.push_back(files);
    files += output.files.size();
  }
  std::vector<PlannedWrite> writes;
  std::uint64_t row = 0;
  for (std::size_t i = first; i < last; ++i) {
    const Unit& unit = plan.units[i];
    const Step& step = plan.steps[unit.step];
    for (const Encoding& encoding : step.encodings) {
      const std::uint64_t bytes = row_bytes(*encoding.type, step.expression->shape);
      for (const Place& place : encoding.places)
        writes.push_back({first_files[place.output] + place.file, place.offset + unit.first_row * bytes,
                          unit.rows * bytes, row, unit.rows});
    }
    row += unit.rows;
  }
  return writes;
}

StoreOptions store_options(const Plan& plan) {
  StoreOptions options;
  options.identity = identity_of(plan);
  const std::uint64_t budget = memory_budget(plan.limits);
  options.memory = std::min(budget / 2, budget - std::min(budget, plan.least_memory));
  options.spool = plan.limits.spool;
  options.writes = planned_writes(plan, 0, plan.units.size());
  return options;
}

void finish_plan(Plan& plan) {
  plan.sources = plan.source.files;
  plan.units.clear();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    add_sources(*step.expression, plan.sources);
    if (step.compared) add_sources(*step.compared, plan.sources);
    add_importance(step.importance, plan.sources);
    for (const Encoding& encoding : step.encodings) {
      add_importance(encoding.importance, plan.sources);
      add_covariance(encoding.covariance, plan.sources);
    }
    add_units(plan, i, plan.units);
  }
  plan.least_memory = least_budget(layouts_of(plan));
}

std::string touched_source(const Plan& plan, std::span<const SourceFile> sources,
                           std::span<const std::int64_t> inode_times) {
  for (std::size_t now = 0; now < std::min(plan.sources.size(), plan.inode_times.size()); ++now)
    for (std::size_t then = 0; then < std::min(sources.size(), inode_times.size()); ++then)
      if (plan.sources[now]->path == sources[then].path && plan.sources[now]->bytes == sources[then].bytes &&
          plan.sources[now]->modified == sources[then].modified && plan.inode_times[now] != 0 &&
          inode_times[then] != 0 && plan.inode_times[now] != inode_times[then])
        return sources[then].path;
  return {};
}

std::optional<Plan> make_plan(const Job& job, Diagnostics& errors) {
  const Requests requests(job);
  Result<std::vector<Model>> source = job.source->open_parts(requests.distinct());
  if (!source) {
    errors.add(source.error());
    return {};
  }
  PlanMaker maker(source.value());
  for (std::size_t i = 0; i < source.value().size(); ++i) {
    Model& model = source.value()[i];
    Result<Model> shared = apply_all(std::move(model), job.stages);
    if (!shared) {
      errors.add(of_part(std::move(shared).error(), requests.distinct()[i]));
      return {};
    }
    model = std::move(shared).value();
    maker.add_warnings(model);
  }
  for (std::size_t i = 0; i < job.outputs.size(); ++i) {
    Result<LaidOut> laid = lay_out(source.value()[requests.of_output(i)], job.outputs[i]);
    if (laid)
      maker.add_output(std::move(laid).value(), job.outputs[i]);
    else
      errors.add(laid.error());
  }
  if (!errors.empty()) return {};
  return maker.finish(job, errors);
}

std::uint64_t memory_budget(const Limits& limits) {
  if (limits.memory) return *limits.memory;
  return std::min(Limits::kDefaultMemory, usable_memory() / 4);  // asks the system
}

Plan make_comparison(const Model& a, const Model& b, const std::vector<TensorPair>& pairs, const Limits& limits) {
  Plan plan;
  plan.source = describe_source({&a, 1});
  plan.limits = limits;
  for (const SourceRef& file : b.files) plan.sources.push_back(file);
  for (const TensorPair& pair : pairs)
    if (pair.a->shape().elements() != 0)
      plan.steps.push_back({pair.a->name, plain_values_of(*pair.a), {}, plain_values_of(*pair.b), pair.a->importance});
  finish_plan(plan);
  return plan;
}

Result<Model> shared_model(const Job& job, const PartRequest& request) {
  BOOST_OUTCOME_TRY(std::vector<Model> models, job.source->open_parts({&request, 1}));
  return apply_all(std::move(models.front()), job.stages);
}

Plan make_measurement(const Model& model, const std::vector<Measured>& tensors, const Limits& limits) {
  Plan plan;
  plan.source = describe_source({&model, 1});
  plan.limits = limits;
  plan.report.error = plan.report.matrices = true;
  for (const Measured& each : tensors) {
    Step& step = plan.steps.emplace_back();
    step.name = each.tensor->name;
    step.expression = plain_values_of(*each.tensor);
    step.is_sample = each.is_sample;
    for (std::size_t i = 0; i < each.types.size(); ++i) {
      const TypeInfo* type = each.types[i];
      const std::shared_ptr<const Importance> importance = type->is_f32() ? nullptr : each.tensor->importance;
      const Encoder encoder =
          encoder_for(each.encoders.at(i), *type, importance != nullptr, each.tensor->covariance.get());
      step.encodings.push_back(
          {type, importance, {}, false, {}, encoder, encoder.is_covariance() ? each.tensor->covariance : nullptr});
    }
  }
  finish_plan(plan);
  return plan;
}

Plan make_check(const Model& model, const Limits& limits) {
  Plan plan;
  plan.source = describe_source({&model, 1});
  plan.limits = limits;
  for (const Tensor& tensor : model.tensors)
    if (tensor.shape().elements() != 0) plan.steps.push_back({tensor.name, plain_values_of(tensor), {}, {}, {}});
  finish_plan(plan);
  return plan;
}

}  // namespace ggufmill
