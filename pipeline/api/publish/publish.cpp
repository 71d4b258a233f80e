#include "pipeline/api/job_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/context.h"
#include "pipeline/api/publish/attestation_step.h"
#include "pipeline/api/publish/card_facts.h"
#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/presets_step.h"
#include "pipeline/api/publish/quality.h"
#include "pipeline/api/publish/result_file.h"
#include "pipeline/api/publish/step_results.h"
#include "pipeline/api/publish/upload_step.h"
#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/stop_scope.h"

namespace ggufmill {
namespace {

constexpr std::size_t kMaxNames = 3;

// Returns "a.gguf, b.gguf and 3 others".
std::string list_names(const std::vector<std::string>& paths) {
  std::string names;
  const std::size_t shown = paths.size() == kMaxNames + 1 ? paths.size() : std::min(paths.size(), kMaxNames);
  for (std::size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + paths[i];
  if (shown < paths.size()) names += fmt::format(" and {} others", paths.size() - shown);
  return names;
}

// A step and what it does.
struct Task {
  JobStep shown;
  std::function<Result<bool>()> is_done;
  std::function<Status(const JobStep& step)> run;
};

class Publisher {
 public:
  Publisher(const Context& context, const BatchJob& job, const StepOptions& options)
      : context_(context), source_(job.source), outputs_(context, job.job), job_(outputs_.job()), options_(options) {}

  Result<std::vector<JobStep>> steps() {
    const StopScope scope(stop());
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

  Result<StepReport> run() {
    const StopScope scope(stop());
    Diagnostics errors;
    check_steps(context_, source_, outputs_, options_.batch, errors);
    if (!errors.empty()) return errors.together();
    BOOST_OUTCOME_TRY(make_tasks());
    bool is_first = true;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      Task& task = tasks_[i];
      if (stop() && *stop()) return interrupted();
      BOOST_OUTCOME_TRY(task.shown.is_done, task.is_done());
      if (task.shown.is_done) continue;
      // The upload itself finds out, and so does what comes after it.
      if (is_first && task.shown.kind == StepKind::kWrite && job_.sections.publish.upload) {
        BOOST_OUTCOME_TRY(
            UploadStep(*job_.sections.publish.upload, outputs_).check_access(options_.batch.run.overwrite, stop()));
      }
      is_first = false;
      if (options_.begun) options_.begun(task.shown, i, tasks_.size());
      BOOST_OUTCOME_TRY(task.run(task.shown));
    }
    return std::move(report_);
  }

 private:
  const std::atomic<bool>* stop() const { return options_.batch.run.stop; }

  Status make_tasks() {
    if (!tasks_.empty()) return ok();
    for (std::size_t i = 0; i < outputs_.parts().size(); ++i) {
      const JobPart& part = outputs_.parts()[i];
      BOOST_OUTCOME_TRY(add_write(part));
      for (const ImportanceComputation& computation : outputs_.computations())
        if (outputs_.part_of(computation.model) == &part) add_importance(computation);
      if (!outputs_.is_divided()) continue;
      if (job_.sections.publish.quality) add_quality(*job_.sections.publish.quality, i + 1);
      add_sending(*job_.sections.publish.upload, part);
    }
    if (job_.sections.publish.quality && !outputs_.is_divided())
      add_quality(*job_.sections.publish.quality, outputs_.parts().size());
    if (job_.sections.publish.card) add_card(*job_.sections.publish.card);
    if (job_.sections.publish.presets) add_presets(*job_.sections.publish.presets);
    if (job_.sections.publish.attestation) add_attestation(*job_.sections.publish.attestation);
    if (job_.sections.publish.upload) add_upload(*job_.sections.publish.upload);
    if (!job_.sections.publish.after.command.empty())
      add_command(job_.sections.publish.after, "for all outputs", [this] { return job_facts(); });
    return ok();
  }

  // ---- outputs ----

  Status add_write(const JobPart& part) {
    std::vector<std::string> paths;
    BOOST_OUTCOME_TRY(const Plan* const plan, outputs_.plan_of(part));
    for (const PlannedOutput& output : plan->outputs) paths.push_back(output.files.front().path);
    tasks_.push_back({{StepKind::kWrite, list_names(paths)},
                      [this, &part] { return is_written(part); },
                      [this, &part](const JobStep&) { return write(part); }});
    for (std::size_t i = 0; i < part.job.outputs.size(); ++i)
      if (const Hook& hook = part.job.outputs[i].sections.publish.after; !hook.command.empty())
        add_command(hook, "for " + paths[i], [this, &part, i] { return facts_of(part, i); });
    return ok();
  }

  Result<bool> is_written(const JobPart& part) {
    const Job job = outputs_.left_of(part);
    if (job.outputs.empty()) return true;
    if (std::ranges::any_of(job.outputs, waits_for_importance)) return false;
    BatchOptions quietly = options_.batch;
    quietly.ended = {};
    const SourcePlan left = plan_source(context_, {source_, job}, quietly);
    return std::ranges::all_of(left.cells, [](const BatchCell& cell) { return cell.state == CellState::kUnchanged; });
  }

  Status write(const JobPart& part) {
    Batch batch;
    batch.file = job_.file;
    batch.jobs.push_back({source_, outputs_.left_of(part)});
    const BatchReport done = run_batch(context_, batch, options_.batch);
    outputs_.forget();
    report_.warnings.insert(report_.warnings.end(), done.warnings.begin(), done.warnings.end());
    report_.cells.insert(report_.cells.end(), done.cells.begin(), done.cells.end());
    Diagnostics failures;
    for (Error& error : failures_of(done.cells)) failures.add(std::move(error));
    if (!failures.empty()) return failures.together();
    if (done.count(CellState::kNotRun) != 0) return interrupted();
    return ok();
  }

  // ---- importance ----

  void add_importance(const ImportanceComputation& computation) {
    const std::string text = fmt::format("{}, by {} from {} and {}", computation.result_path(), computation.program,
                                         computation.model, computation.text);
    tasks_.push_back({{StepKind::kImportance, text},
                      [this, computation]() -> Result<bool> { return outputs_.is_known(computation); },
                      [this, computation](const JobStep& step) { return compute(computation, step); }});
  }

  Status compute(const ImportanceComputation& computation, const JobStep& step) {
    BOOST_OUTCOME_TRY(const std::string cached, outputs_.cached_importance(computation));
    if (!is_own_file(cached)) {
      BOOST_OUTCOME_TRY(const WrittenOutput model, outputs_.written_as(computation.model));
      BOOST_OUTCOME_TRY(const ProgramFile file, ProgramFile::create(cached, ".gguf"));
      BOOST_OUTCOME_TRY(compute_importance(computation, model.path, file.path(), programs(step)));
      BOOST_OUTCOME_TRY(file.finish());
    }
    outputs_.forget();
    return files_.copy(cached, computation.result_path(), options_.batch.run.overwrite);
  }

  // ---- quality, card, presets, attestation, upload ----

  // Compares the outputs of the first `parts` parts.
  void add_quality(const QualityOptions& quality, std::size_t parts) {
    const auto made = [this, &quality](std::size_t count) { return QualityStep::make(quality, outputs_, count); };
    tasks_.push_back(
        {{StepKind::kQuality, fmt::format("by {} on {}", quality.perplexity.program, quality.perplexity.text)},
         [this, made, parts]() -> Result<bool> {
           // Predictions are removed when all outputs are measured.
           const auto whole = made(outputs_.parts().size());
           if (whole && whole.value().is_done()) return true;
           BOOST_OUTCOME_TRY(const QualityStep step, made(parts));
           return step.is_done();
         },
         [this, made, parts](const JobStep& step) -> Status {
           BOOST_OUTCOME_TRY(const QualityStep measured, made(parts));
           return measured.run(programs(step), options_.batch.run.overwrite);
         }});
  }

  void add_card(const CardOptions& card) {
    const auto text = [this, &card]() -> Result<std::string> {
      BOOST_OUTCOME_TRY(const CardTemplate form, card_template(card, outputs_.job().outputs.size()));
      BOOST_OUTCOME_TRY(const Card facts, card_of(card, outputs_));
      return render_card(facts, form.text, form.name);
    };
    tasks_.push_back({{StepKind::kCard, card.path},
                      [text, &card]() -> Result<bool> {
                        const auto wanted = text();
                        return wanted && is_text_at(card.path, wanted.value());
                      },
                      [this, text, &card](const JobStep&) -> Status {
                        BOOST_OUTCOME_TRY(const std::string wanted, text());
                        BOOST_OUTCOME_TRY(const Plan* const plan, outputs_.plan_of(outputs_.parts().front()));
                        for (std::string& warning : card_warnings(card, *plan, outputs_.job()))
                          report_.warnings.push_back(std::move(warning));
                        return files_.write(card.path, wanted, options_.batch.run.overwrite);
                      }});
  }

  void add_presets(const PresetOptions& presets) {
    const auto step = [this, &presets] { return PresetsStep(presets, outputs_); };
    tasks_.push_back({{StepKind::kPresets, list_names(paths_of(presets))},
                      [this, step]() -> Result<bool> { return step().is_done(stop()); },
                      [this, step](const JobStep&) -> Status {
                        BOOST_OUTCOME_TRY(std::vector<std::string> warnings,
                                          step().run(files_, options_.batch.run.overwrite, stop()));
                        for (std::string& warning : warnings) report_.warnings.push_back(std::move(warning));
                        return ok();
                      }});
  }

  void add_attestation(const AttestationOptions& attestation) {
    tasks_.push_back(
        {{StepKind::kAttestation, attestation.path},
         [this, &attestation]() -> Result<bool> { return AttestationStep(attestation, context_, outputs_).is_done(); },
         [this, &attestation](const JobStep& step) {
           return AttestationStep(attestation, context_, outputs_)
               .run(files_, options_.batch.run.overwrite, stop(), bytes_of(step));
         }});
  }

  void add_sending(const UploadOptions& upload, const JobPart& part) {
    std::vector<std::string> targets;
    for (const JobOutput& output : part.job.outputs) targets.push_back(output.sink->target());
    tasks_.push_back(
        {{StepKind::kUpload, fmt::format("of the content of {}", list_names(targets))},
         [this, &upload, &part]() -> Result<bool> { return UploadStep(upload, outputs_).is_part_done(part); },
         [this, &upload, &part](const JobStep& step) {
           UploadStep sending(upload, outputs_);
           const Status sent = sending.send_part(part, stop(), bytes_of(step));
           add_notes(sending.notes());
           return sent;
         }});
  }

  void add_upload(const UploadOptions& upload) {
    tasks_.push_back({{StepKind::kUpload, "to " + upload.to},
                      [this, &upload]() -> Result<bool> { return UploadStep(upload, outputs_).is_done(); },
                      [this, &upload](const JobStep& step) {
                        UploadStep sending(upload, outputs_);
                        const Status sent = sending.run(options_.batch.run.overwrite, stop(), bytes_of(step));
                        add_notes(sending.notes());
                        return sent;
                      }});
  }

  void add_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes)
      if (std::ranges::find(report_.notes, note) == report_.notes.end()) report_.notes.push_back(note);
  }

  std::function<void(std::uint64_t, std::uint64_t)> bytes_of(const JobStep& step) const {
    return [this, &step](std::uint64_t done, std::uint64_t total) {
      if (options_.sent) options_.sent(step, done, total);
    };
  }

  // ---- commands ----

  using Facts = std::vector<std::pair<std::string, std::string>>;  // variables for a command

  void add_command(const Hook& hook, const std::string& what, const std::function<Result<Facts>()>& facts) {
    const auto key = [&hook, facts]() -> Result<std::string> {
      std::vector<std::string> parts{"command"};
      parts.insert(parts.end(), hook.command.begin(), hook.command.end());
      if (hook.secrets == Secrets::kKeep) parts.emplace_back("with secrets");
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
                        how.secrets = hook.secrets;
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

  Result<Facts> facts_of(const JobPart& part, std::size_t index) {
    BOOST_OUTCOME_TRY(const WrittenOutput one, outputs_.written(part, index));
    return Facts{{"GGUFMILL_OUTPUT", one.path},
                 {"GGUFMILL_BYTES", std::to_string(one.bytes)},
                 {"GGUFMILL_SHA256", one.manifest.files.front().sha256},
                 {"GGUFMILL_MANIFEST", one.manifest_path}};
  }

  Result<Facts> job_facts() {
    std::string paths, sums;
    BOOST_OUTCOME_TRY(outputs_.for_each_written([&](const JobOutput&, const WrittenOutput& written) -> Status {
      paths += written.path + "\n";
      for (const ManifestFile& file : written.manifest.files) sums += file.sha256 + "\n";
      return ok();
    }));
    return Facts{{"GGUFMILL_OUTPUTS", paths}, {"GGUFMILL_SHA256", sums}};
  }

  ProgramOptions programs(const JobStep& step) const {
    ProgramOptions programs;
    programs.threads = threads_for(job_.limits.threads);
    programs.stop = stop();
    if (options_.chunks)
      programs.progress = [this, &step](const std::string& model, std::uint64_t done, std::uint64_t total) {
        options_.chunks(step, model, done, total);
      };
    return programs;
  }

  const Context& context_;
  const std::string source_;
  JobOutputs outputs_;
  const Job& job_;
  const StepOptions& options_;
  std::vector<Task> tasks_;
  StepResults results_;
  StepFiles files_;
  StepReport report_;
};

}  // namespace

Status check_steps_are_built(const Job& /*job*/) { return ok(); }

bool has_steps(const Job& job) {
  return job.sections.publish.quality || job.sections.publish.card || job.sections.publish.presets ||
         job.sections.publish.attestation || job.sections.publish.upload ||
         !job.sections.publish.after.command.empty() || std::ranges::any_of(job.outputs, [](const JobOutput& output) {
           return waits_for_importance(output) || !output.sections.publish.after.command.empty();
         });
}

Result<std::vector<JobStep>> steps_of(const Context& context, const BatchJob& job, const StepOptions& options) {
  return Publisher(context, job, options).steps();
}

std::set<std::string> sent_files(const Context& context, const BatchJob& job) {
  JobOutputs outputs(context, job.job);
  std::set<std::string> sent;
  if (!outputs.is_divided()) return sent;
  const UploadStep upload(*job.job.sections.publish.upload, outputs);
  for (const JobPart& part : outputs.parts())
    for (std::size_t i = 0; i < part.job.outputs.size(); ++i)
      if (const auto known = outputs.written(part, i); known && upload.is_sent(known.value()))
        for (const OutputFile& file : known.value().planned->files)
          if (!is_file(file.path)) sent.insert(file.path);
  return sent;
}

std::vector<std::string> step_warnings(const Job& job, const Plan& plan) {
  return job.sections.publish.card ? card_warnings(*job.sections.publish.card, plan, job) : std::vector<std::string>();
}

Result<StepReport> run_steps(const Context& context, const BatchJob& job, const StepOptions& options) {
  return Publisher(context, job, options).run();
}

Job with_known_importance(const Context& context, const Job& job) {
  if (std::ranges::none_of(job.outputs, waits_for_importance)) return job;
  return JobOutputs(context, job).resolved(job);
}

}  // namespace ggufmill
