#include "pipeline/api/publish/job_outputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/context.h"
#include "pipeline/api/publish/quality.h"
#include "pipeline/api/publish/result_file.h"
#include "pipeline/api/publish/step_results.h"
#include "pipeline/api/publish/upload_step.h"
#include "pipeline/core/text.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

bool is_computed(const std::shared_ptr<const Stage>& stage) { return stage->as_computed_importance() != nullptr; }

}  // namespace

bool waits_for_importance(const JobOutput& output) { return std::ranges::any_of(output.stages, is_computed); }

JobOutputs::JobOutputs(const Context& context, const Job& job) : context_(context), job_(job) {
  job_.manifest = true;
  JobPart first{job_}, second{job_, true};
  for (JobPart* part : {&first, &second}) {
    part->job.outputs.clear();
    part->job.sections.publish.quality.reset();
    part->job.sections.publish.card.reset();
    part->job.sections.publish.presets.reset();
    part->job.sections.publish.attestation.reset();
    part->job.sections.publish.upload.reset();
    part->job.sections.publish.after = {};
  }
  for (const JobOutput& output : job_.outputs)
    (waits_for_importance(output) ? second : first).job.outputs.push_back(output);
  // The report is that of the last part: all are written to the same path.
  if (!second.job.outputs.empty()) first.job.report.reset();
  if (!first.job.outputs.empty()) parts_.push_back(std::move(first));
  if (!second.job.outputs.empty()) parts_.push_back(std::move(second));
  if (is_divided()) divide(*job_.sections.publish.upload->space);
}

// Parts that cannot be planned stay whole; the error is that of their plan.
void JobOutputs::divide(std::uint64_t space) {
  std::vector<JobPart> divided;
  for (const JobPart& part : parts_) {
    const auto plan = plan_of(part);
    std::uint64_t taken = 0;
    for (std::size_t i = 0; i < part.job.outputs.size(); ++i) {
      std::uint64_t bytes = 0;
      if (plan)
        for (const OutputFile& file : plan.value()->outputs[i].files) bytes += file.bytes;
      if (i == 0 || bytes > space - std::min(taken, space)) {
        divided.push_back(part);
        divided.back().job.outputs.clear();
        taken = 0;
      }
      divided.back().job.outputs.push_back(part.job.outputs[i]);
      taken += bytes;
    }
  }
  parts_ = std::move(divided);
  forget();
}

std::vector<ImportanceComputation> JobOutputs::computations() const {
  std::vector<ImportanceComputation> all;
  for (const JobOutput& output : job_.outputs)
    for (const auto& stage : output.stages)
      if (is_computed(stage)) {
        const ImportanceComputation& one = stage->as_computed_importance()->computation();
        if (std::ranges::none_of(all, [&](const auto& known) { return known.is_same(one); })) all.push_back(one);
      }
  return all;
}

Result<std::string> JobOutputs::cached_importance(const ImportanceComputation& computation) {
  BOOST_OUTCOME_TRY(const WrittenOutput model, written_as(computation.model));
  BOOST_OUTCOME_TRY(const std::string text, hash_of(computation.text));
  std::vector<std::string> parts{"importance", text, std::to_string(computation.chunks),
                                 std::to_string(computation.context)};
  for (const ManifestFile& file : model.manifest.files) parts.push_back(file.sha256);
  parts.insert(parts.end(), computation.options.begin(), computation.options.end());
  BOOST_OUTCOME_TRY(const std::string folder, made_cache_folder("importance"));
  return folder + "/" + result_key(parts) + ".gguf";
}

bool JobOutputs::is_known(const ImportanceComputation& computation) {
  const std::string path = computation.result_path();
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  const auto cached = cached_importance(computation);
  const bool is_there = cached && is_own_file(cached.value()) && is_file(path) && have_same_bytes(cached.value(), path);
  known_[path] = is_there;
  return is_there;
}

Job JobOutputs::resolved(Job job) {
  for (JobOutput& output : job.outputs)
    for (auto& stage : output.stages)
      if (const ComputedImportanceStage* computed = stage->as_computed_importance())
        if (const ImportanceComputation& computation = computed->computation(); is_known(computation))
          stage = computed->with_result(computation.result_path());
  return job;
}

Result<const Plan*> JobOutputs::plan_of(const JobPart& part) {
  std::optional<Plan>& plan = plans_[&part];
  if (!plan) {
    BOOST_OUTCOME_TRY(plan, context_.plan(resolved(part)));
  }
  return &*plan;
}

Job JobOutputs::left_of(const JobPart& part) {
  Job left = resolved(part);
  const auto plan = is_divided() ? plan_of(part) : Result<const Plan*>(nullptr);
  if (!plan || !plan.value()) return left;
  std::vector<JobOutput> outputs;
  for (std::size_t i = 0; i < left.outputs.size(); ++i) {
    const auto known = written(part, i);
    const bool is_over = known && is_described(*plan.value(), i) &&
                         UploadStep(*job_.sections.publish.upload, *this).is_sent(known.value()) &&
                         !is_needed(left.outputs[i]);
    if (!is_over) outputs.push_back(left.outputs[i]);
  }
  left.outputs = std::move(outputs);
  return left;
}

// Returns true if an importance is still to be computed from an output, or others to be compared with it.
bool JobOutputs::is_needed(const JobOutput& output) {
  const std::string target = output.sink->target();
  for (const ImportanceComputation& each : computations())
    if (each.model == target && !is_known(each)) return true;
  if (!job_.sections.publish.quality || !is_base(*job_.sections.publish.quality, job_, output)) return false;
  const auto first = QualityStep::make(*job_.sections.publish.quality, *this, 1);
  if (first && first.value().has_predictions()) return false;
  const auto all = QualityStep::make(*job_.sections.publish.quality, *this);
  return !all || !all.value().is_measured();
}

const JobPart* JobOutputs::part_of(const std::string& target) const {
  const auto part = std::ranges::find_if(parts_, [&](const JobPart& each) {
    return std::ranges::any_of(each.job.outputs, [&](const auto& output) { return output.sink->target() == target; });
  });
  return part == parts_.end() ? nullptr : &*part;
}

Result<WrittenOutput> JobOutputs::written_as(const std::string& target) {
  if (const JobPart* const part = part_of(target))
    for (std::size_t i = 0; i < part->job.outputs.size(); ++i)
      if (part->job.outputs[i].sink->target() == target) return written(*part, i);
  return usage_error(fmt::format("no output of this job is {}", quoted_name(target)));
}

Result<WrittenOutput> JobOutputs::written(const JobPart& part, std::size_t index) {
  BOOST_OUTCOME_TRY(const Plan* const plan, plan_of(part));
  WrittenOutput written;
  written.planned = &plan->outputs[index];
  written.manifest_path = plan->manifest_path(index);
  BOOST_OUTCOME_TRY(written.manifest, load_manifest(written.manifest_path));
  written.path = written.planned->files.front().path;
  for (const ManifestFile& file : written.manifest.files) written.bytes += file.bytes;
  return written;
}

Status JobOutputs::for_each_written(const TakeWritten& take, std::optional<std::size_t> parts) {
  for (std::size_t p = 0; p < parts.value_or(parts_.size()); ++p)
    for (std::size_t i = 0; i < parts_[p].job.outputs.size(); ++i) {
      BOOST_OUTCOME_TRY(const WrittenOutput one, written(parts_[p], i));
      BOOST_OUTCOME_TRY(take(parts_[p].job.outputs[i], one));
    }
  return ok();
}

void JobOutputs::forget() {
  plans_.clear();
  known_.clear();
}

}  // namespace ggufmill
