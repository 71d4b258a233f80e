#include "pipeline/api/publish/publish.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "pipeline/api/command.h"
#include "pipeline/api/context.h"
#include "pipeline/api/publish/quality.h"
#include "pipeline/api/publish/result_file.h"
#include "pipeline/api/publish/step_results.h"
#include "pipeline/core/text.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kMostNames = 3;

bool is_computed(const std::shared_ptr<const Stage>& stage) { return stage->as_computed_importance() != nullptr; }
bool waits_for_importance(const JobOutput& output) { return std::ranges::any_of(output.stages, is_computed); }

// Returns "a.gguf, b.gguf and 3 others".
std::string list_names(const std::vector<std::string>& paths) {
  std::string names;
  const std::size_t shown = paths.size() == kMostNames + 1 ? paths.size() : std::min(paths.size(), kMostNames);
  for (std::size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + paths[i];
  if (shown < paths.size()) names += fmt::format(" and {} others", paths.size() - shown);
  return names;
}

// The outputs of a job that are written in the same read of the source.
struct Part {
  Job job;  // with these outputs only
  bool needs_importance = false;
};

// A step and what it does.
struct Task {
  JobStep shown;
  std::function<Result<bool>()> is_done;
  std::function<Status(const JobStep& step)> run;
};

// One output that exists.
struct Written {
  PlannedOutput planned;  // without the list of tensors
  Manifest manifest;
  std::string path;           // of the first file
  std::string manifest_path;  // next to it
  std::uint64_t bytes = 0;
};

class Publisher {
 public:
  Publisher(const Context& context, const BatchJob& job, const PublishOptions& options)
      : context_(context), source_(job.source), job_(job.job), options_(options) {
    job_.manifest = true;
    split();
  }

  Result<std::vector<JobStep>> steps() {
    BOOST_OUTCOME_TRY(make_tasks());
    std::vector<JobStep> steps;
    bool is_done = true;  // a step that is not done changes what the next ones depend on
    for (Task& task : tasks_) {
      if (is_done) {
        BOOST_OUTCOME_TRY(is_done, task.is_done());
      }
      task.shown.is_done = is_done;
      steps.push_back(task.shown);
    }
    return steps;
  }

  void check(Diagnostics& errors) {
    check_programs(errors);
    check_texts(errors);
    if (job_.quality)
      if (const Status base = check_base(*job_.quality); !base) errors.add(base.error());
    for (const Part& part : parts_) check_part(part, errors);
    if (errors.empty()) check_paths(errors);
  }

  Result<PublishReport> run() {
    Diagnostics errors;
    check(errors);
    if (!errors.empty()) return errors.together();
    BOOST_OUTCOME_TRY(make_tasks());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      Task& task = tasks_[i];
      if (stop() && *stop()) return interrupted();
      BOOST_OUTCOME_TRY(task.shown.is_done, task.is_done());
      if (task.shown.is_done) continue;
      if (options_.begun) options_.begun(task.shown, i, tasks_.size());
      BOOST_OUTCOME_TRY(task.run(task.shown));
    }
    return std::move(report_);
  }

  // Returns the job with the importance that is known.
  Job known() {
    Job job = job_;
    for (JobOutput& output : job.outputs) resolve(output);
    return job;
  }

 private:
  const std::atomic<bool>* stop() const { return options_.batch.run.stop; }

  void split() {
    Part first{job_}, second{job_, true};
    first.job.outputs.clear();
    second.job.outputs.clear();
    for (const JobOutput& output : job_.outputs)
      (waits_for_importance(output) ? second : first).job.outputs.push_back(output);
    // The report is that of the last part: all are written to the same path.
    if (!second.job.outputs.empty()) first.job.report.reset();
    if (!first.job.outputs.empty()) parts_.push_back(std::move(first));
    if (!second.job.outputs.empty()) parts_.push_back(std::move(second));
  }

  // ---- tasks ----

  Status make_tasks() {
    if (!tasks_.empty()) return ok();
    for (const Part& part : parts_) {
      if (part.needs_importance)
        for (const ImportanceComputation& computation : computations()) add_importance(computation);
      BOOST_OUTCOME_TRY(add_write(part));
    }
    if (job_.quality) add_quality(*job_.quality);
    if (job_.card) add_card(*job_.card);
    if (!job_.after.command.empty()) add_command(job_.after, "for all outputs", [this] { return job_facts(); });
    return ok();
  }

  Status add_write(const Part& part) {
    std::vector<std::string> paths;
    BOOST_OUTCOME_TRY(const Plan plan, context_.plan(resolved(part.job)));
    for (const PlannedOutput& output : plan.outputs) paths.push_back(output.files.front().path);
    tasks_.push_back({{StepKind::kWrite, list_names(paths)},
                      [this, &part] { return is_written(part); },
                      [this, &part](const JobStep&) { return write(part); }});
    for (std::size_t i = 0; i < part.job.outputs.size(); ++i)
      if (const Hook& hook = part.job.outputs[i].after; !hook.command.empty())
        add_command(hook, "for " + paths[i], [this, &part, i] { return facts_of(part, i); });
    return ok();
  }

  Result<bool> is_written(const Part& part) {
    if (part.needs_importance && std::ranges::any_of(resolved(part.job).outputs, waits_for_importance)) return false;
    BatchOptions quietly = options_.batch;
    quietly.ended = {};
    const SourcePlan left = plan_source(context_, {source_, resolved(part.job)}, quietly);
    return std::ranges::all_of(left.cells, [](const BatchCell& cell) { return cell.state == CellState::kUnchanged; });
  }

  Status write(const Part& part) {
    Batch batch;
    batch.file = job_.file;
    batch.jobs.push_back({source_, resolved(part.job)});
    const BatchReport done = run_batch(context_, batch, options_.batch);
    report_.warnings.insert(report_.warnings.end(), done.warnings.begin(), done.warnings.end());
    report_.cells.insert(report_.cells.end(), done.cells.begin(), done.cells.end());
    Diagnostics failures;
    for (Error& error : failures_of(done.cells)) failures.add(std::move(error));
    if (!failures.empty()) return failures.together();
    if (done.count(CellState::kNotRun) != 0) return interrupted();
    return ok();
  }

  // ---- importance ----

  std::vector<ImportanceComputation> computations() const {
    std::vector<ImportanceComputation> all;
    for (const JobOutput& output : job_.outputs)
      for (const auto& stage : output.stages)
        if (is_computed(stage)) {
          const ImportanceComputation& one = stage->as_computed_importance()->computation();
          if (std::ranges::none_of(all, [&](const auto& known) { return known.is_same(one); })) all.push_back(one);
        }
    return all;
  }

  void add_importance(const ImportanceComputation& computation) {
    const std::string text = fmt::format("{}, by {} from {} and {}", computation.result_path(), computation.program,
                                         computation.model, computation.text);
    tasks_.push_back({{StepKind::kImportance, text},
                      [this, computation] { return is_known(computation); },
                      [this, computation](const JobStep& step) { return compute(computation, step); }});
  }

  // Returns the path of the cached result; an error if the model is not written yet.
  Result<std::string> cached_importance(const ImportanceComputation& computation) {
    BOOST_OUTCOME_TRY(const Written model, written_as(computation.model));
    BOOST_OUTCOME_TRY(const std::string text, hash_of(computation.text));
    std::vector<std::string> parts{"importance", text, std::to_string(computation.chunks),
                                   std::to_string(computation.context)};
    for (const ManifestFile& file : model.manifest.files) parts.push_back(file.sha256);
    parts.insert(parts.end(), computation.options.begin(), computation.options.end());
    BOOST_OUTCOME_TRY(const std::string folder, made_cache_folder("importance"));
    return folder + "/" + result_key(parts) + ".gguf";
  }

  Result<bool> is_known(const ImportanceComputation& computation) {
    const auto cached = cached_importance(computation);
    return cached && is_file(cached.value()) && is_file(computation.result_path()) &&
           have_same_bytes(cached.value(), computation.result_path());
  }

  Status compute(const ImportanceComputation& computation, const JobStep& step) {
    BOOST_OUTCOME_TRY(const std::string cached, cached_importance(computation));
    if (!is_file(cached)) {
      BOOST_OUTCOME_TRY(const Written model, written_as(computation.model));
      const ProgramFile file(cached, ".gguf");
      BOOST_OUTCOME_TRY(compute_importance(computation, model.path, file.path(), programs(step)));
      BOOST_OUTCOME_TRY(file.finish());
    }
    return files_.copy(cached, computation.result_path(), options_.batch.run.overwrite);
  }

  // Replaces the computations of an output whose results are known by their files.
  void resolve(JobOutput& output) {
    for (auto& stage : output.stages)
      if (is_computed(stage)) {
        const ComputedImportanceStage& computed = *stage->as_computed_importance();
        const auto known = is_known(computed.computation());
        if (known && known.value()) stage = computed.with_result(computed.computation().result_path());
      }
  }
  Job resolved(Job job) {
    for (JobOutput& output : job.outputs) resolve(output);
    return job;
  }

  // ---- quality ----

  void add_quality(const QualityOptions& quality) {
    tasks_.push_back({{StepKind::kQuality, fmt::format("by {} on {}", quality.program, quality.text)},
                      [this, &quality]() -> Result<bool> {
                        BOOST_OUTCOME_TRY(QualityStep step, quality_step(quality));
                        return step.is_done();
                      },
                      [this, &quality](const JobStep& step) -> Status {
                        BOOST_OUTCOME_TRY(QualityStep measured, quality_step(quality));
                        return measured.run(programs(step), options_.batch.run.overwrite);
                      }});
  }

  std::string base_of(const QualityOptions& quality) const {
    return quality.base.empty() ? job_.outputs.front().sink->target() : quality.base;
  }

  Result<QualityStep> quality_step(const QualityOptions& quality) {
    std::vector<QualityOutput> outputs;
    std::optional<QualityOutput> base;
    for (const JobOutput& output : job_.outputs) {
      BOOST_OUTCOME_TRY(const Written written, written_as(output));
      QualityOutput one{written.path, {}};
      for (const ManifestFile& file : written.manifest.files) one.sha256.push_back(file.sha256);
      if (output.sink->target() == base_of(quality)) {
        base = std::move(one);
        continue;
      }
      BOOST_OUTCOME_TRY(const bool is_compared, compares(quality, output, written.path));
      if (is_compared) outputs.push_back(std::move(one));
    }
    BOOST_OUTCOME_TRY(check_base(quality));
    BOOST_OUTCOME_TRY(std::string text, hash_of(quality.text));
    return QualityStep(quality, *std::move(base), std::move(outputs), std::move(text));
  }

  static Result<bool> compares(const QualityOptions& quality, const JobOutput& output, const std::string& path) {
    if (output.part.value_or(ModelPart::kText) != ModelPart::kText || !path.ends_with(".gguf")) return false;
    const std::string name = fs::path(path).filename().string();
    for (const Pattern& pattern : quality.outputs) {
      BOOST_OUTCOME_TRY(const bool matches, pattern.matches(name));
      if (matches) return true;
    }
    return quality.outputs.empty();
  }

  // ---- card ----

  void add_card(const CardOptions& card) { static_cast<void>(card); }

  // ---- commands ----

  using Facts = std::vector<std::pair<std::string, std::string>>;  // variables for a command

  void add_command(const Hook& hook, const std::string& what, std::function<Result<Facts>()> facts) {
    const auto key = [&hook, facts]() -> Result<std::string> {
      std::vector<std::string> parts{"command"};
      parts.insert(parts.end(), hook.command.begin(), hook.command.end());
      BOOST_OUTCOME_TRY(const Facts known, facts());
      for (const auto& [name, value] : known) parts.push_back(value);
      return result_key(parts);
    };
    tasks_.push_back({{StepKind::kCommand, shell_words(hook.command) + ", " + what},
                      [key, this]() -> Result<bool> {
                        const auto known = key();
                        return known && results_.find(known.value()).has_value();
                      },
                      [key, facts, &hook, this](const JobStep&) -> Status {
                        CommandOptions how;
                        how.stop = stop();
                        BOOST_OUTCOME_TRY(how.environment, facts());
                        BOOST_OUTCOME_TRY(const std::string id, key());
                        if (const auto ended = run_and_capture(hook.command, how); !ended) {
                          if (ended.error().code == ExitCode::kInterrupted) return ended.error();
                          Error error = error_at(hook.origin, fmt::format("{} failed", shell_words(hook.command)),
                                                 "run the job again to start the command again");
                          error.code = ended.error().code;
                          error.detail = ended.error().what + "\n" + ended.error().detail;
                          return error;
                        }
                        return results_.add(id, {{"done", true}});
                      }});
  }

  Result<Facts> facts_of(const Part& part, std::size_t index) {
    BOOST_OUTCOME_TRY(const Written written, written_as(part.job.outputs[index]));
    return Facts{{"GGUFMILL_OUTPUT", written.path},
                 {"GGUFMILL_BYTES", std::to_string(written.bytes)},
                 {"GGUFMILL_SHA256", written.manifest.files.front().sha256},
                 {"GGUFMILL_MANIFEST", written.manifest_path}};
  }

  Result<Facts> job_facts() {
    std::string paths, sums;
    for (const JobOutput& output : job_.outputs) {
      BOOST_OUTCOME_TRY(const Written written, written_as(output));
      paths += written.path + "\n";
      for (const ManifestFile& file : written.manifest.files) sums += file.sha256 + "\n";
    }
    return Facts{{"GGUFMILL_OUTPUTS", paths}, {"GGUFMILL_SHA256", sums}};
  }

  // ---- what is there ----

  ProgramOptions programs(const JobStep& step) const {
    ProgramOptions programs;
    programs.threads = threads_for(job_.limits.threads);
    programs.stop = stop();
    if (options_.chunks)
      programs.progress = [this, &step](std::uint64_t done, std::uint64_t total) {
        options_.chunks(step, done, total);
      };
    return programs;
  }

  Result<Written> written_as(const std::string& target) {
    for (const JobOutput& output : job_.outputs)
      if (output.sink->target() == target) return written_as(output);
    return usage_error(fmt::format("no output of this job is {}", quoted_name(target)));
  }

  // Returns what is known of an output that was written, from its manifest.
  Result<Written> written_as(const JobOutput& output) {
    Job alone = job_;
    alone.report.reset();
    alone.outputs = {output};
    if (waits_for_importance(output)) resolve(alone.outputs.front());
    BOOST_OUTCOME_TRY(Plan plan, context_.plan(alone));
    Written written;
    written.manifest_path = plan.manifest_path(0);
    BOOST_OUTCOME_TRY(written.manifest, load_manifest(written.manifest_path));
    written.planned = std::move(plan.outputs.front());
    written.path = written.planned.files.front().path;
    for (const ManifestFile& file : written.manifest.files) written.bytes += file.bytes;
    return written;
  }

  // ---- checks ----

  void check_part(const Part& part, Diagnostics& errors) {
    const Job job = resolved(part.job);
    BatchOptions quietly = options_.batch;
    quietly.ended = {};
    quietly.adjust = {};
    if (std::ranges::any_of(job.outputs, waits_for_importance) || needs_measurement(job)) {
      const Result<Plan> plan = context_.plan(job);
      if (!plan) return errors.add(plan.error());
      for (const Error& error : context_.check(plan.value(), options_.batch.run.overwrite))
        if (!wants_importance(error) && !wants_measurement(error)) errors.add(error);
      return;
    }
    for (const Error& error : failures_of(plan_source(context_, {source_, job}, quietly).cells)) errors.add(error);
  }

  void check_program(const std::string& program, const Origin& origin, const char* help, Diagnostics& errors) const {
    if (!find_program(program))
      errors.add(error_at(origin, fmt::format("there is no program {}", quoted_name(program)), help));
  }

  void check_programs(Diagnostics& errors) const {
    constexpr const char* kLlama =
        "it is part of llama.cpp: give its path, as in program: llama.cpp/build/bin/NAME, or add its folder to PATH";
    constexpr const char* kCommand = "give its path, or add its folder to PATH";
    for (const ImportanceComputation& each : computations()) check_program(each.program, each.origin, kLlama, errors);
    if (job_.quality) check_program(job_.quality->program, job_.quality->origin, kLlama, errors);
    for (const JobOutput& output : job_.outputs)
      if (!output.after.command.empty())
        check_program(output.after.command.front(), output.after.origin, kCommand, errors);
    if (!job_.after.command.empty()) check_program(job_.after.command.front(), job_.after.origin, kCommand, errors);
  }

  void check_texts(Diagnostics& errors) const {
    const auto check_text = [&](const std::string& path, const Origin& origin) {
      if (!is_file(path))
        errors.add(error_at(origin, fmt::format("there is no text {}", quoted_name(path)), "`text` is a file"));
    };
    for (const ImportanceComputation& each : computations()) check_text(each.text, each.origin);
    if (job_.quality) check_text(job_.quality->text, job_.quality->origin);
  }

  // Refuses paths that two steps write, or that one writes and another reads.
  void check_paths(Diagnostics& errors) {
    std::vector<WrittenPath> written;
    std::vector<std::string> read;
    for (const Part& part : parts_) {
      const Result<Plan> plan = context_.plan(resolved(part.job));
      if (!plan) return errors.add(plan.error());
      BatchFiles files;
      files.add(plan.value());
      written.insert(written.end(), files.written.begin(), files.written.end());
      // The result of a computation is both written and read.
      for (const std::string& path : files.read)
        if (std::ranges::none_of(computations(), [&](const auto& one) { return one.result_path() == path; }))
          read.push_back(path);
    }
    for (const ImportanceComputation& each : computations()) {
      written.push_back({each.result_path(), "importance matrix", each.origin});
      read.push_back(each.text);
    }
    if (job_.quality) {
      read.push_back(job_.quality->text);
      if (!job_.quality->json.empty()) written.push_back({job_.quality->json, "quality", job_.quality->origin});
    }
    if (job_.card) written.push_back({job_.card->path, "card", job_.card->origin});
    check_distinct(written, read, errors);
    check_results(errors);
  }

  // Refuses files that exist and were not written by an earlier run.
  void check_results(Diagnostics& errors) {
    std::vector<std::string> paths;
    for (const ImportanceComputation& each : computations()) paths.push_back(each.result_path());
    if (job_.quality && !job_.quality->json.empty()) paths.push_back(job_.quality->json);
    if (job_.card) paths.push_back(job_.card->path);
    for (const std::string& path : paths)
      if (const Status free = files_.check(path, options_.batch.run.overwrite); !free) errors.add(free.error());
  }

  Status check_base(const QualityOptions& quality) const {
    const std::string target = base_of(quality);
    if (std::ranges::any_of(job_.outputs, [&](const auto& output) { return output.sink->target() == target; }))
      return ok();
    return error_at(quality.origin, fmt::format("no output of this job is {}", quoted_name(target)),
                    "`base` is the path of an output");
  }

  const Context& context_;
  const std::string source_;
  Job job_;
  const PublishOptions& options_;
  std::vector<Part> parts_;
  std::vector<Task> tasks_;
  StepResults results_;
  StepFiles files_;
  PublishReport report_;
};

}  // namespace

std::string_view name_of(StepKind kind) {
  constexpr std::string_view kNames[] = {"write", "importance", "quality", "card", "command"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool has_steps(const Job& job) {
  return job.quality || job.card || !job.after.command.empty() ||
         std::ranges::any_of(job.outputs, [](const JobOutput& output) {
           return waits_for_importance(output) || !output.after.command.empty();
         });
}

bool has_steps(const Batch& batch) {
  return std::ranges::any_of(batch.jobs, [](const BatchJob& each) { return has_steps(each.job); });
}

Result<std::vector<JobStep>> steps_of(const Context& context, const BatchJob& job, const PublishOptions& options) {
  return Publisher(context, job, options).steps();
}

std::vector<Error> check_steps(const Context& context, const BatchJob& job, const PublishOptions& options) {
  Diagnostics errors;
  Publisher(context, job, options).check(errors);
  return errors.errors();
}

Result<PublishReport> publish(const Context& context, const BatchJob& job, const PublishOptions& options) {
  return Publisher(context, job, options).run();
}

Job with_known_importance(const Context& context, const Job& job) {
  if (std::ranges::none_of(job.outputs, waits_for_importance)) return job;
  const PublishOptions options;
  Job known = Publisher(context, {"", job}, options).known();
  known.manifest = job.manifest;
  return known;
}

}  // namespace ggufmill
