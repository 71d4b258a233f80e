// Measures the error of every candidate type for every tensor of a job's targets.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "pipeline/api/check.h"
#include "pipeline/api/context.h"
#include "pipeline/api/measurement_cache.h"
#include "pipeline/api/wanted_tensors.h"
#include "pipeline/core/text.h"
#include "pipeline/graph/bind.h"
#include "pipeline/plan/step_layout.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

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

MeasuredTensor nothing_measured(const SampledTensor& sample) {
  const Tensor& tensor = *sample.all;
  MeasuredTensor none{tensor.name, sample.identity, tensor.shape(), 0, 0, tensor.importance != nullptr, {}};
  if (sample.scale() != 1) none.rows = sample.rows.shape().rows();
  return none;
}

// Number of matrices that are measured individually.
std::uint64_t matrices_of(const Shape& rows) { return rows.rows() > rows.dims[1] ? rows.rows() / rows.dims[1] : 0; }

// Describes the measurement of one type.
MeasuredTensor describe(const SampledTensor& sample, const TypeInfo& of, const TargetResult& result) {
  const ErrorSums& sums = *result.error;
  const double scale = sample.scale();
  const auto rows = static_cast<double>(sample.rows.shape().rows());
  const RowSpread& spread = sums.spread;
  MeasuredTensor described = nothing_measured(sample);
  MeasuredType& type = described.types.emplace_back();
  type.type = of.name;
  type.bytes = bytes_of(of, sample.all->shape()).value();
  described.energy = sums.reference * scale;
  described.weighted_energy = sums.weighted_reference * scale;
  type.error = sums.difference * scale;
  type.weighted_error = sums.weighted_difference * scale;
  type.standard_error = standard_error(rows, scale, sums.difference, sums.reference, spread.ee, spread.er, spread.rr);
  type.weighted_standard_error = standard_error(rows, scale, sums.weighted_difference, sums.weighted_reference,
                                                spread.weighted_ee, spread.weighted_er, spread.weighted_rr);
  described.matrices =
      sums_of(result.matrices, described.weighted, scale, &ErrorSums::reference, &ErrorSums::weighted_reference);
  type.matrices =
      sums_of(result.matrices, described.weighted, scale, &ErrorSums::difference, &ErrorSums::weighted_difference);
  return described;
}

// Returns true if a line of the cache has the form of describe()'s result. The numbers themselves are not checked.
bool is_of(const MeasuredTensor& line, const SampledTensor& sample, const TypeInfo& type) {
  const MeasuredTensor wanted = nothing_measured(sample);
  const std::uint64_t matrices = matrices_of(sample.rows.shape());
  const auto fits = [&](const MatrixSums& sums) {
    return sums.plain.size() == matrices && sums.weighted.size() == (wanted.weighted ? matrices : 0);
  };
  return line.shape == wanted.shape && line.rows == wanted.rows && line.weighted == wanted.weighted &&
         line.types.size() == 1 && line.types[0].type == type.name &&
         line.types[0].bytes == bytes_of(type, wanted.shape).value() && fits(line.matrices) &&
         fits(line.types[0].matrices);
}

// One tensor in one type: what the cache knows, or what has to be measured.
struct Cell {
  std::string
      made_of;  // its identity, that of MeasuredTensor::made_of in the cache; empty if nothing has to be measured
  std::optional<MeasuredTensor> measured;  // as from describe()

  bool is_missing() const { return !made_of.empty() && !measured; }
};

// Joins the measurements of a tensor's types. Types without any loss have none.
MeasuredTensor joined(const Measured& measured, const SampledTensor& sample, const std::vector<Cell>& cells) {
  MeasuredTensor all = nothing_measured(sample);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].measured) {
      all.types.push_back(
          {std::string(measured.types[i]->name), bytes_of(*measured.types[i], all.shape).value(), 0, 0});
      continue;
    }
    const MeasuredTensor& one = *cells[i].measured;
    all.energy = one.energy;
    all.weighted_energy = std::max(all.weighted_energy, one.weighted_energy);
    all.matrices = one.matrices;
    all.types.push_back(one.types[0]);
  }
  for (MeasuredType& type : all.types)  // for types without any loss
    if (type.matrices.plain.empty()) {
      type.matrices.plain.resize(all.matrices.plain.size());
      type.matrices.weighted.resize(all.matrices.weighted.size());
    }
  std::ranges::stable_sort(all.types, {}, &MeasuredType::bytes);
  return all;
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

// Returns the modules of the foreign types and encoders that a measurement of all tensors uses, and of all candidate
// types.
std::vector<TypeModule> modules_of(const Plan& measurement, const Job& job, const Kernels& kernels) {
  std::vector<ForeignUse> uses = foreign_uses_of(measurement);
  for (const JobOutput& output : job.outputs)
    for (const auto& stage : output.stages)
      if (const TargetOptions* target = target_of(*stage))
        for (const TypeInfo* candidate : target->candidates) uses.push_back({candidate});
  return kernels.modules_of(uses);
}

// Measures what the cache does not contain, in batches, and adds each batch to it.
class Measurer {
 public:
  Measurer(const Model& model, const Wanted& wanted, const Job& job, const Kernels& kernels,
           const MeasureOptions& options)
      : model_(model),
        wanted_(wanted),
        job_(job),
        kernels_(kernels),
        options_(options),
        cache_(options.cache),
        plan_(plan_of(wanted.tensors)) {
    plan_.modules = kernels.modules_of(foreign_uses_of(plan_));
    for (const Step& step : plan_.steps) {
      std::vector<Cell>& cells = cells_.emplace_back();
      for (const Encoding& encoding : step.encodings)
        cells.push_back({work_of(step, encoding) == Work::kEncode ? identity_of(plan_, step, encoding) : "", {}});
    }
  }

  // The plan of everything, whether it is known or not.
  const Plan& plan() const { return plan_; }

  // Looks up everything in the cache.
  void recall() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const SampledTensor& sample = sample_of(i);
      const std::string file = file_of(i);
      for (std::size_t k = 0; k < cells_[i].size(); ++k) {
        Cell& cell = cells_[i][k];
        if (cell.made_of.empty()) continue;
        const MeasuredTensor* line = cache_.find(file, cell.made_of);
        if (line && is_of(*line, sample, *wanted_.tensors[i].types[k])) cell.measured = *line;
      }
    }
  }

  std::vector<std::size_t> missing() const {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (std::ranges::any_of(cells_[i], &Cell::is_missing)) missing.push_back(i);
    return missing;
  }
  Plan plan_of_missing() const {
    std::vector<Measured> tensors;
    for (const std::size_t i : missing()) tensors.push_back(missing_of(i));
    return plan_of(tensors);
  }

  Status measure() {
    const std::vector<std::size_t> left = missing();
    for (std::size_t i = 0; i < cells_.size(); ++i) all_bytes_ += source_bytes(wanted_.tensors[i]);
    done_bytes_ = all_bytes_;
    for (const std::size_t i : left) done_bytes_ -= source_bytes(wanted_.tensors[i]);
    std::uint64_t batch = std::min(kFirstBatch, options_.batch_bytes);
    for (std::size_t first = 0, next = 0; first < left.size(); first = next) {
      for (std::uint64_t bytes = 0; next < left.size() && (next == first || bytes < batch); ++next)
        bytes += source_bytes(wanted_.tensors[left[next]]);
      const auto start = std::chrono::steady_clock::now();
      BOOST_OUTCOME_TRY(measure_at_once(std::span(left).subspan(first, next - first)));
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      const double change = std::clamp(kBatchSeconds / std::max(time.count(), 1e-3), 0.25, 2.0);
      batch = std::min(static_cast<std::uint64_t>(static_cast<double>(batch) * change) + 1, options_.batch_bytes);
    }
    return ok();
  }

  std::vector<MeasuredTensor> results() const {
    std::vector<MeasuredTensor> all;
    for (std::size_t i = 0; i < cells_.size(); ++i) all.push_back(joined(wanted_.tensors[i], sample_of(i), cells_[i]));
    return all;
  }
  std::vector<std::string> warnings() const { return cache_.warnings(); }

 private:
  Plan plan_of(const std::vector<Measured>& tensors) const {
    Plan plan = make_measurement(model_, tensors, job_.limits);
    // Values that a run keeps have no defined error.
    plan.nonfinite = job_.nonfinite == Nonfinite::kError ? Nonfinite::kError : Nonfinite::kZero;
    return plan;
  }

  const SampledTensor& sample_of(std::size_t i) const { return *wanted_.sample_of.at(wanted_.tensors[i].tensor); }

  // Returns the name of the tensor's file in the cache: a hash of its values and importance.
  std::string file_of(std::size_t i) const {
    Tensor tensor = *wanted_.tensors[i].tensor;
    tensor.encoder = reference_encoder();  // each line of the file has its own
    return measured_identity(tensor);
  }

  Measured missing_of(std::size_t i) const {
    const Measured& wanted = wanted_.tensors[i];
    Measured missing{wanted.tensor, {}, {}, wanted.is_sample};
    for (std::size_t k = 0; k < wanted.types.size(); ++k) {
      if (!cells_[i][k].is_missing()) continue;
      missing.types.push_back(wanted.types[k]);
      missing.encoders.push_back(wanted.encoders[k]);
    }
    return missing;
  }

  Status measure_at_once(std::span<const std::size_t> tensors) {
    std::vector<Measured> missing;
    for (const std::size_t i : tensors) missing.push_back(missing_of(i));
    const Plan plan = plan_of(missing);
    EngineOptions run = engine_options(options_.run);
    if (options_.progress)
      run.progress = [&](const Progress& now) { options_.progress(done_bytes_ + now.bytes_read, all_bytes_); };
    BOOST_OUTCOME_TRY(const RunReport report, run_plan(plan, kernels_, run));
    done_bytes_ += plan.bytes_read();
    for (std::size_t step = 0; step < tensors.size(); ++step) take(tensors[step], report.steps.at(step));
    return ok();
  }

  // Takes the results of the types that a tensor was missing, in order.
  void take(std::size_t i, const StepResult& result) {
    std::vector<MeasuredTensor> lines;
    std::size_t next = 0;
    for (std::size_t k = 0; k < cells_[i].size(); ++k) {
      Cell& cell = cells_[i][k];
      if (!cell.is_missing()) continue;
      if (const TargetResult& measured = result.encodings.at(next++); measured.error) {
        cell.measured = describe(sample_of(i), *wanted_.tensors[i].types[k], measured);
        lines.push_back(*cell.measured);
        lines.back().made_of = cell.made_of;
      } else {
        cell.made_of.clear();  // a tensor without values
      }
    }
    cache_.add(file_of(i), lines);
  }

  // An interrupted measurement loses about this time of work at most.
  static constexpr double kBatchSeconds = 10;
  static constexpr std::uint64_t kFirstBatch = 4 << 20;

  const Model& model_;
  const Wanted& wanted_;
  const Job& job_;
  const Kernels& kernels_;
  const MeasureOptions& options_;
  MeasurementCache cache_;
  Plan plan_;
  std::vector<std::vector<Cell>> cells_;  // for each tensor and each of its types
  std::uint64_t done_bytes_ = 0, all_bytes_ = 0;
};

// The tensors of a job that are measured, and what is known of them.
class JobMeasurer {
 public:
  static Result<JobMeasurer> make(const Job& job, const Kernels& kernels, const MeasureOptions& options) {
    BOOST_OUTCOME_TRY(Model shared, measured_model(job));
    JobMeasurer made;
    made.shared_ = std::make_unique<const Model>(std::move(shared));
    BOOST_OUTCOME_TRY(Wanted wanted, wanted_of(job, *made.shared_, kernels));
    made.modules_ = modules_of(make_measurement(*made.shared_, wanted.tensors, job.limits), job, kernels);
    keep_part(options.part, options.parts, wanted.tensors);
    made.wanted_ = std::make_unique<const Wanted>(std::move(wanted));
    made.measurer_ = std::make_unique<Measurer>(*made.shared_, *made.wanted_, job, kernels, options);
    if (!options.starts_over) made.measurer_->recall();
    return made;
  }

  Measurer& measurer() { return *measurer_; }
  std::size_t tensors() const { return wanted_->tensors.size(); }
  std::vector<std::string> warnings() const {
    std::vector<std::string> all;
    for (const std::string& each : wanted_->warnings)
      if (std::ranges::count(all, each) == 0) all.push_back(each);  // outputs may share one
    for (std::string& each : measurer_->warnings()) all.push_back(std::move(each));
    return all;
  }

  Measurement result() const {
    Measurement measurement;
    measurement.ggufmill = GGUFMILL_VERSION;
    measurement.modules = modules_;
    for (const SourceRef& source : measurer_->plan().sources) measurement.sources.push_back(*source);
    measurement.tensors = measurer_->results();
    return measurement;
  }

 private:
  JobMeasurer() = default;

  std::unique_ptr<const Model> shared_;
  std::unique_ptr<const Wanted> wanted_;  // points into the model
  std::vector<TypeModule> modules_;
  std::unique_ptr<Measurer> measurer_;
};

// Refuses a job that cannot be planned whatever the measurement contains: its target is out of reach, for example.
Status check_target(const Context& context, const Job& job) {
  if (const Result<Plan> planned = context.plan(job); !planned && !wants_measurement(planned.error()))
    return planned.error();
  return ok();
}

}  // namespace

Result<Plan> Context::plan_measurement(const Job& job, const MeasureOptions& options) const {
  BOOST_OUTCOME_TRY(check_target(*this, job));
  BOOST_OUTCOME_TRY(JobMeasurer measurer, JobMeasurer::make(job, kernels(), options));
  return measurer.measurer().plan_of_missing();
}

Result<Recalled> Context::recall(const Job& job, const MeasureOptions& options) const {
  BOOST_OUTCOME_TRY(JobMeasurer measurer, JobMeasurer::make(job, kernels(), options));
  Recalled recalled;
  recalled.tensors = measurer.tensors();
  recalled.known = recalled.tensors - measurer.measurer().missing().size();
  recalled.warnings = measurer.warnings();
  if (recalled.known == recalled.tensors) recalled.measurement = std::make_shared<const Measurement>(measurer.result());
  return recalled;
}

Result<Measurement> Context::measure(const Job& job, const MeasureOptions& options) const {
  BOOST_OUTCOME_TRY(check_target(*this, job));
  BOOST_OUTCOME_TRY(JobMeasurer measurer, JobMeasurer::make(job, kernels(), options));
  const Plan& plan = measurer.measurer().plan();
  if (memory_budget(plan.limits) < plan.least_memory)
    return usage_error(fmt::format("limits.memory is {}, but measuring the longest row needs {}",
                                   human_bytes(memory_budget(plan.limits)), human_bytes(plan.least_memory)));
  const std::size_t known = measurer.tensors() - measurer.measurer().missing().size();
  if (options.known && known != 0) options.known(known, measurer.tensors());
  const Status measured = measurer.measurer().measure();
  if (options.warn)
    for (const std::string& warning : measurer.warnings()) options.warn(warning);
  BOOST_OUTCOME_TRY(measured);
  return measurer.result();
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

namespace {

struct CurveOfJob {
  Encoder encoder;
  std::vector<CurvePoint> points;  // empty: the target is not measured
};

Result<CurveOfJob> curve_of(const Context& context, const Job& job, std::size_t output, std::size_t points) {
  const Job measured = with_recalled(context, job);
  const StageList& stages = measured.outputs.at(output).stages;
  BOOST_OUTCOME_TRY(Model model, shared_model(measured, measured.outputs.at(output).request()));
  model.notes.set(notes::kTensorAlignment, measured.outputs.at(output).sink->tensor_alignment(model));
  BOOST_OUTCOME_TRY(const auto made, undecided(stages, std::move(model)));
  if (!made)
    return usage_error("the output has no target, so there is no curve",
                       "set a target, for example quantize: {target: {bits: 4.5}}");
  CurveOfJob curve;
  for (const auto& stage : stages)
    if (const TargetStage* target = stage->as_target()) curve.encoder = target->encoder();
  if (!made->target->measurement) return curve;
  // A target that cannot be met has no point on the curve; the error of the plan gives the reason.
  const Result<Plan> planned = context.plan(measured);
  std::optional<Model> chosen;
  if (planned) chosen = with_types_of(planned.value().outputs.at(output), made->model);
  BOOST_OUTCOME_TRY(curve.points, choice_curve(*made->target, made->model, made->open, points, context.recipes(),
                                               chosen ? &*chosen : nullptr));
  return curve;
}

}  // namespace

Result<Curve> Context::curve(const Job& job, std::size_t output, std::size_t points) const {
  BOOST_OUTCOME_TRY(CurveOfJob own, curve_of(*this, job, output, points));
  if (own.points.empty()) return usage_error("the target is not measured yet", "run `ggufmill measure` first");
  BOOST_OUTCOME_TRY(CurveOfJob other, curve_of(*this, with_other_encoders(job), output, points));
  return Curve{describe(own.encoder), std::move(own.points), describe(other.encoder), std::move(other.points)};
}

Job with_other_encoders(const Job& job) {
  Job with = job;
  for (JobOutput& output : with.outputs)
    for (auto& stage : output.stages)
      if (const TargetStage* target = stage->as_target())
        stage = target->with_encoder(target->encoder().is_reference() ? search_encoder() : reference_encoder());
  return with;
}

Job without_measurements(const Job& job) {
  Job without = job;
  for (JobOutput& output : without.outputs)
    for (auto& stage : output.stages)
      if (const TargetStage* target = stage->as_target()) stage = target->without_measurement();
  return without;
}

bool needs_measurement(const Job& job) {
  return std::ranges::any_of(job.outputs, [](const JobOutput& output) {
    return std::ranges::any_of(output.stages, [](const auto& stage) {
      const TargetOptions* target = target_of(*stage);
      return target && !target->measurement && !target->measured_fault;
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

bool is_measured(const PlannedOutput& output) { return std::ranges::none_of(output.problems, wants_measurement); }

void give_measurement(Job& job, const std::shared_ptr<const Measurement>& measurement) {
  for (JobOutput& output : job.outputs)
    for (auto& stage : output.stages)
      if (const TargetOptions* target = target_of(*stage); target && !target->measurement && !target->measured_fault)
        stage = stage->as_target()->with_measurement(measurement);
}

Job with_recalled(const Context& context, const Job& job) {
  Job with = job;
  if (!needs_measurement(job)) return with;
  // An error is that of planning or of measuring, which report it.
  if (const auto recalled = context.recall(job); recalled && recalled.value().measurement)
    give_measurement(with, recalled.value().measurement);
  return with;
}

}  // namespace ggufmill
