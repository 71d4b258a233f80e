// Measures the error of every candidate type for every tensor of a job's targets.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "pipeline/api/check.h"
#include "pipeline/api/context.h"
#include "pipeline/api/measure_journal.h"
#include "pipeline/core/text.h"
#include "pipeline/graph/bind.h"

namespace ggufmill {
namespace {

// A tensor of a model, and the rows of it that are measured.
struct SampledTensor {
  const Tensor* all = nullptr;
  Tensor rows;
  std::string identity;  // measured_identity() of the rows

  // How many times as many rows the tensor has.
  double scale() const { return static_cast<double>(all->shape().rows()) / static_cast<double>(rows.shape().rows()); }
};

// The tensors for which the targets of a job choose types, each once, with all their candidates.
struct Wanted {
  std::vector<Undecided> models;                    // the samples point into these, so none may move
  std::deque<SampledTensor> samples;                // a deque never moves its elements
  std::vector<Measured> tensors;                    // point to the rows of samples
  std::map<std::string_view, std::size_t> by_name;  // index into `tensors`
  std::map<const Tensor*, const SampledTensor*> sample_of;
};

bool takes(const TypeInfo& type, const Tensor& tensor, const Kernels& kernels) {
  if (tensor.shape().columns() % type.block_elements != 0) return false;
  if (&type == &tensor.source_type() || type.is_f32()) return true;
  const KernelChoice* encode = kernels.encode(type.id);
  return encode && (tensor.importance || !(encode->kernel->flags & GGUFMILL_NEEDS_IMPORTANCE));
}

Status add_target(const JobOutput& output, const Model& shared, const Kernels& kernels, Wanted& wanted) {
  BOOST_OUTCOME_TRY(auto found, undecided(output.stages, shared));
  if (!found) return ok();
  const Undecided& made = wanted.models.emplace_back(*std::move(found));
  for (const std::size_t i : made.open) {
    const Tensor& tensor = made.model.tensors[i];
    BOOST_OUTCOME_TRY(Tensor rows, sampled(tensor, made.target->sample));
    const EncodersByType& encoders = made.target->encoders;
    const std::string identity = measured_identity(rows, encoders);
    const auto [known, is_new] = wanted.by_name.emplace(tensor.name, wanted.tensors.size());
    if (is_new) {
      const SampledTensor& sample = wanted.samples.emplace_back(SampledTensor{&tensor, rows, identity});
      wanted.tensors.push_back({&sample.rows, {}, {}});
      wanted.sample_of.emplace(&sample.rows, &sample);
    }
    Measured& measured = wanted.tensors[known->second];
    if (wanted.sample_of.at(measured.tensor)->identity != identity)
      return usage_error(fmt::format("tensor {}, its sample or its encoder differs between two outputs with a target",
                                     quoted_name(tensor.name)),
                         "measure them with separate pipeline files");
    for (const TypeInfo* type : made.target->candidates)
      if (takes(*type, tensor, kernels) && std::ranges::count(measured.types, type) == 0) {
        const auto own = encoders.find(type);
        measured.types.push_back(type);
        measured.encoders.push_back(own == encoders.end() ? tensor.encoder : own->second);
      }
  }
  return ok();
}

// Collects `sum` of each matrix and, if `weighted`, also `weighted_sum`.
MatrixSums sums_of(const std::vector<ErrorSums>& matrices, bool weighted, double scale, double ErrorSums::*sum,
                   double ErrorSums::*weighted_sum) {
  MatrixSums sums;
  for (const ErrorSums& matrix : matrices) {
    sums.plain.push_back(matrix.*sum * scale);
    if (weighted) sums.weighted.push_back(matrix.*weighted_sum * scale);
  }
  return sums;
}

// Returns the standard error of a tensor's error e, extrapolated from a sample of `rows` rows to `scale` times as many,
// given that the tensor's energy is r: that of a ratio estimator (W. G. Cochran, "Sampling Techniques", 1977, 6.4).
double standard_error(double rows, double scale, double e, double r, double ee, double er, double rr) {
  if (rows < 2 || scale == 1 || r == 0) return 0;
  const double ratio = e / r, variance = std::max(0.0, ee - 2 * ratio * er + ratio * ratio * rr) / (rows - 1);
  return scale * rows * std::sqrt(variance / rows * (1 - 1 / scale));
}

MeasuredTensor describe(const Measured& measured, const SampledTensor& sample, const StepResult* result) {
  const Tensor& tensor = *sample.all;
  const double scale = sample.scale();
  MeasuredTensor described{tensor.name, sample.identity, tensor.shape(), 0, 0, tensor.importance != nullptr, {}};
  if (scale != 1) described.rows = sample.rows.shape().rows();
  const auto rows = static_cast<double>(sample.rows.shape().rows());
  for (std::size_t i = 0; i < measured.types.size(); ++i) {
    MeasuredType type{std::string(measured.types[i]->name),
                      bytes_of(*measured.types[i], tensor.shape().elements()).value(), 0, 0};
    if (result && result->encodings[i].error) {
      const ErrorSums& sums = *result->encodings[i].error;
      const RowSpread& spread = sums.spread;
      described.energy = sums.reference * scale;
      described.weighted_energy = std::max(described.weighted_energy, sums.weighted_reference * scale);
      type.error = sums.difference * scale;
      type.weighted_error = sums.weighted_difference * scale;
      type.standard_error =
          standard_error(rows, scale, sums.difference, sums.reference, spread.ee, spread.er, spread.rr);
      type.weighted_standard_error = standard_error(rows, scale, sums.weighted_difference, sums.weighted_reference,
                                                    spread.weighted_ee, spread.weighted_er, spread.weighted_rr);
      const std::vector<ErrorSums>& matrices = result->encodings[i].matrices;
      described.matrices =
          sums_of(matrices, described.weighted, scale, &ErrorSums::reference, &ErrorSums::weighted_reference);
      type.matrices =
          sums_of(matrices, described.weighted, scale, &ErrorSums::difference, &ErrorSums::weighted_difference);
    }
    described.types.push_back(std::move(type));
  }
  for (MeasuredType& type : described.types)  // for types without any loss
    if (type.matrices.plain.empty()) {
      type.matrices.plain.resize(described.matrices.plain.size());
      type.matrices.weighted.resize(described.matrices.weighted.size());
    }
  std::ranges::stable_sort(described.types, {}, &MeasuredType::bytes);
  return described;
}

std::uint64_t source_bytes(const Measured& measured) { return measured.tensor->expression->bytes(); }

// Keeps only the tensors of one part. Parts are cut between tensors and have about the same number of source bytes.
void keep_part(std::size_t part, std::size_t parts, std::vector<Measured>& tensors) {
  double all = 0, before = 0;
  for (const Measured& each : tensors) all += static_cast<double>(source_bytes(each));
  std::vector<Measured> kept;
  for (const Measured& each : tensors) {
    const auto place = static_cast<std::size_t>((all > 0 ? before / all : 0) * static_cast<double>(parts));
    if (std::min(place, parts - 1) == part) kept.push_back(each);
    before += static_cast<double>(source_bytes(each));
  }
  tensors = std::move(kept);
}

// Returns the modules of the foreign types that a measurement of all tensors decodes and of all candidate types.
std::vector<TypeModule> modules_of(const Plan& measurement, const Job& job, const Kernels& kernels) {
  std::vector<const TypeInfo*> types = foreign_types_of(measurement);
  for (const JobOutput& output : job.outputs)
    for (const auto& stage : output.stages)
      if (const TargetOptions* target = target_of(*stage))
        types.insert(types.end(), target->candidates.begin(), target->candidates.end());
  return kernels.modules_of(types);
}

// Measures the tensors that no journal contains. With a journal, measures them in batches and adds each batch to it.
class Measurer {
 public:
  Measurer(const Model& model, const Wanted& wanted, const Limits& limits, const Kernels& kernels,
           const std::vector<TypeModule>& modules, const MeasureOptions& options)
      : model_(model), wanted_(wanted), limits_(limits), kernels_(kernels), modules_(modules), options_(options) {}

  Result<std::vector<MeasuredTensor>> measure() {
    const std::vector<Measured>& wanted = wanted_.tensors;
    BOOST_OUTCOME_TRY(MeasureJournal journal, MeasureJournal::open(options_.journal, modules_));
    for (const std::string& path : options_.other_journals) {
      BOOST_OUTCOME_TRY(journal.read_also(path));
    }
    for (const std::string& warning : journal.warnings())
      if (options_.warn) options_.warn(warning);
    std::vector<MeasuredTensor> all(wanted.size());
    std::vector<std::size_t> left;  // indices into `all`
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      all_bytes_ += source_bytes(wanted[i]);
      if (const MeasuredTensor* known =
              journal.find(wanted_.sample_of.at(wanted[i].tensor)->identity, wanted[i].types)) {
        all[i] = *known;
        all[i].name = wanted[i].tensor->name;
        done_bytes_ += source_bytes(wanted[i]);
      } else {
        left.push_back(i);
      }
    }
    if (options_.goes_on && left.size() < wanted.size()) options_.goes_on(wanted.size() - left.size(), wanted.size());
    for (std::size_t first = 0, next = 0; first < left.size(); first = next) {
      std::vector<Measured> some;
      const std::uint64_t most = options_.journal.empty() ? UINT64_MAX : options_.journal_bytes;
      for (std::uint64_t bytes = 0; next < left.size() && (next == first || bytes < most); ++next) {
        some.push_back(wanted[left[next]]);
        bytes += source_bytes(some.back());
      }
      BOOST_OUTCOME_TRY(const std::vector<MeasuredTensor> measured, measure_at_once(some));
      BOOST_OUTCOME_TRY(journal.add(measured));
      for (std::size_t i = 0; i < some.size(); ++i) all[left[first + i]] = measured[i];
    }
    return all;
  }

 private:
  Result<std::vector<MeasuredTensor>> measure_at_once(const std::vector<Measured>& tensors) {
    const Plan plan = make_measurement(model_, tensors, limits_);
    EngineOptions run = engine_options(options_.run);
    if (options_.progress)
      run.progress = [&](const Progress& now) { options_.progress(done_bytes_ + now.bytes_read, all_bytes_); };
    BOOST_OUTCOME_TRY(const RunReport report, run_plan(plan, kernels_, run));
    done_bytes_ += plan.bytes_read();
    std::vector<MeasuredTensor> measured;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      measured.push_back(describe(tensors[i], *wanted_.sample_of.at(tensors[i].tensor),
                                  i < report.steps.size() ? &report.steps[i] : nullptr));
    return measured;
  }

  const Model& model_;
  const Wanted& wanted_;
  const Limits& limits_;
  const Kernels& kernels_;
  const std::vector<TypeModule>& modules_;
  const MeasureOptions& options_;
  std::uint64_t done_bytes_ = 0, all_bytes_ = 0;
};

// Returns the request of the outputs that have targets. All must want the same model, because a measurement is of one.
Result<PartRequest> measured_request(const Job& job) {
  const JobOutput* first = nullptr;
  for (const JobOutput& output : job.outputs) {
    if (std::ranges::none_of(output.stages, [](const auto& stage) { return target_of(*stage) != nullptr; })) continue;
    if (!first) first = &output;
    if (!output.request().is_same_model(first->request()))
      return error_at(output.origin, "the outputs with a target must be of the same part and outtype",
                      "choose types for the other part in a job of its own");
  }
  return first ? first->request() : PartRequest{};
}

Result<Model> measured_model(const Job& job) {
  BOOST_OUTCOME_TRY(const PartRequest request, measured_request(job));
  return shared_model(job, request);
}

Result<Wanted> wanted_of(const Job& job, const Model& shared, const Kernels& kernels) {
  Wanted wanted;
  wanted.models.reserve(job.outputs.size());
  for (const JobOutput& output : job.outputs) {
    BOOST_OUTCOME_TRY(add_target(output, shared, kernels, wanted));
  }
  if (wanted.models.empty())
    return usage_error("no output of the job has a target, so there is nothing to measure",
                       "set a target, for example quantize: {target: {bits: 4.5}}");
  std::erase_if(wanted.tensors, [](const Measured& each) { return each.types.empty(); });
  return wanted;
}

}  // namespace

Result<Plan> Context::plan_measurement(const Job& job) const {
  BOOST_OUTCOME_TRY(const Model shared, measured_model(job));
  BOOST_OUTCOME_TRY(const Wanted wanted, wanted_of(job, shared, kernels()));
  return make_measurement(shared, wanted.tensors, job.limits);
}

Result<Measurement> Context::measure(const Job& job, const MeasureOptions& options) const {
  BOOST_OUTCOME_TRY(const Model shared, measured_model(job));
  BOOST_OUTCOME_TRY(Wanted wanted, wanted_of(job, shared, kernels()));
  Measurement measurement;
  measurement.modules = modules_of(make_measurement(shared, wanted.tensors, job.limits), job, kernels());
  keep_part(options.part, options.parts, wanted.tensors);
  const Plan plan = make_measurement(shared, wanted.tensors, job.limits);
  if (memory_budget(plan.limits) < plan.least_memory)
    return usage_error(fmt::format("limits.memory is {}, but measuring the longest row needs {}",
                                   human_bytes(memory_budget(plan.limits)), human_bytes(plan.least_memory)));
  BOOST_OUTCOME_TRY(std::vector<MeasuredTensor> tensors,
                    Measurer(shared, wanted, job.limits, kernels(), measurement.modules, options).measure());
  measurement.ggufmill = GGUFMILL_VERSION;
  for (const SourceRef& source : plan.sources) measurement.sources.push_back(*source);
  measurement.tensors = std::move(tensors);
  return measurement;
}

namespace {

// Returns the model with the types that the plan assigns; none if a later stage renamed tensors.
std::optional<Model> with_types_of(const PlannedOutput& output, Model model) {
  std::map<std::string_view, const TypeInfo*> types;
  for (const PlannedTensor& tensor : output.tensors) types.emplace(tensor.name, tensor.type);
  for (Tensor& tensor : model.tensors) {
    const auto found = types.find(tensor.name);
    if (found == types.end()) return std::nullopt;
    tensor.type = found->second;
  }
  return model;
}

}  // namespace

Result<std::vector<CurvePoint>> Context::curve(const Job& job, std::size_t output, std::size_t points) const {
  BOOST_OUTCOME_TRY(Model model, shared_model(job, job.outputs.at(output).request()));
  BOOST_OUTCOME_TRY(const auto made, undecided(job.outputs.at(output).stages, std::move(model)));
  if (!made || !made->target->measurement)
    return usage_error("the output has no target, or the target is not measured yet", "run `ggufmill measure` first");
  // A target that cannot be met has no point on the curve; the error of the plan gives the reason.
  const Result<Plan> planned = plan(job);
  std::optional<Model> chosen;
  if (planned) chosen = with_types_of(planned.value().outputs.at(output), made->model);
  return choice_curve(*made->target, made->model, made->open, points, recipes(), chosen ? &*chosen : nullptr);
}

bool needs_measurement(const Job& job) {
  return std::ranges::any_of(job.outputs, [](const JobOutput& output) {
    return std::ranges::any_of(output.stages, [](const auto& stage) {
      const TargetOptions* target = target_of(*stage);
      return target && !target->measurement;
    });
  });
}

Status check_unmeasured(const Context& context, const Job& job, bool overwrite) {
  BOOST_OUTCOME_TRY(const Plan plan, context.plan(job));
  Diagnostics errors;
  for (const Error& error : context.check(plan, overwrite))
    if (!wants_measurement(error)) errors.add(error);
  if (!errors.empty()) return errors.together();
  return ok();
}

void give_measurement(Job& job, const std::shared_ptr<const Measurement>& measurement) {
  for (JobOutput& output : job.outputs)
    for (auto& stage : output.stages)
      if (const TargetOptions* target = target_of(*stage); target && !target->measurement)
        stage = stage->as_target()->with_measurement(measurement);
}

Status measure_if_needed(const Context& context, Job& job, bool overwrite, const MeasureOptions& options) {
  if (!needs_measurement(job)) return ok();
  BOOST_OUTCOME_TRY(check_unmeasured(context, job, overwrite));
  BOOST_OUTCOME_TRY(Measurement measured, context.measure(job, options));
  give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  return ok();
}

}  // namespace ggufmill
