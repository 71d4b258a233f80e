// Checks of a job with steps before its first step.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/context.h"
#include "pipeline/api/job_steps.h"
#include "pipeline/api/llama_programs.h"
#include "pipeline/api/publish/attestation_step.h"
#include "pipeline/api/publish/card_facts.h"
#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/presets_step.h"
#include "pipeline/api/publish/quality.h"
#include "pipeline/api/publish/result_file.h"
#include "pipeline/api/publish/upload_step.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

class StepChecks {
 public:
  StepChecks(const Context& context, const std::string& source, JobOutputs& outputs, const BatchOptions& batch,
             Diagnostics& errors)
      : context_(context), source_(source), outputs_(outputs), job_(outputs.job()), batch_(batch), errors_(errors) {}

  void check() {
    check_programs();
    check_texts();
    check_compared();
    check_local();
    if (job_.sections.publish.quality)
      if (const Status base = check_base(*job_.sections.publish.quality, job_); !base) errors_.add(base.error());
    for (const JobPart& part : outputs_.parts()) check_part(part);
    if (job_.sections.publish.card)
      if (const auto form = card_template(*job_.sections.publish.card, job_.outputs.size()); !form)
        errors_.add(form.error());
    if (job_.sections.publish.presets) PresetsStep(*job_.sections.publish.presets, outputs_).check(errors_);
    if (job_.sections.publish.attestation)
      AttestationStep(*job_.sections.publish.attestation, context_, outputs_).check(errors_);
    if (job_.sections.publish.upload) UploadStep(*job_.sections.publish.upload, outputs_).check(errors_);
    if (outputs_.is_divided()) check_space(*job_.sections.publish.upload);
    if (errors_.empty()) check_paths();
  }

 private:
  void check_part(const JobPart& part) {
    const Job job = outputs_.left_of(part);
    if (job.outputs.empty()) return;
    BatchOptions quietly = batch_;
    quietly.ended = {};
    quietly.adjust = {};
    if (std::ranges::any_of(job.outputs, waits_for_importance) || needs_measurement(job)) {
      const Result<const Plan*> plan = outputs_.plan_of(part);
      if (!plan) return errors_.add(plan.error());
      for (const Error& error : context_.check(*plan.value(), batch_.run.overwrite))
        if (!wants_importance(error) && !wants_measurement(error)) errors_.add(error);
      return;
    }
    for (const Error& error : failures_of(plan_source(context_, {source_, job}, quietly).cells)) errors_.add(error);
  }

  void check_program(const std::string& program, const Origin& origin, const char* help) const {
    if (!find_program(program))
      errors_.add(error_at(origin, fmt::format("there is no program {}", quoted_name(program)), help));
  }

  void check_programs() const {
    constexpr const char* kLlama =
        "it is part of llama.cpp: give its path, as in program: llama.cpp/build/bin/NAME, or add its folder to PATH";
    constexpr const char* kCommand = "give its path, or add its folder to PATH";
    for (const ImportanceComputation& each : outputs_.computations()) check_program(each.program, each.origin, kLlama);
    if (job_.sections.publish.quality)
      check_program(job_.sections.publish.quality->perplexity.program, job_.sections.publish.quality->origin, kLlama);
    for (const JobOutput& output : job_.outputs)
      if (!output.sections.publish.after.command.empty())
        check_program(output.sections.publish.after.command.front(), output.sections.publish.after.origin, kCommand);
    if (!job_.sections.publish.after.command.empty())
      check_program(job_.sections.publish.after.command.front(), job_.sections.publish.after.origin, kCommand);
  }

  // A token has at least one byte of the text.
  void check_texts() const {
    const auto check_text = [&](const std::string& path, unsigned context, const Origin& origin) {
      if (!is_file(path))
        return errors_.add(error_at(origin, fmt::format("there is no text {}", quoted_name(path)), "`text` is a file"));
      std::error_code unknown;
      const std::uint64_t bytes = fs::file_size(path, unknown), least = least_tokens(context);
      if (!unknown && bytes < least)
        errors_.add(error_at(origin,
                             fmt::format("the text {} is too short: it has {} bytes, but chunks of {} tokens need at "
                                         "least {} tokens",
                                         quoted_name(path), bytes, context, least),
                             "use a longer text, or shorter chunks: `context`"));
    };
    for (const ImportanceComputation& each : outputs_.computations()) check_text(each.text, each.context, each.origin);
    if (job_.sections.publish.quality)
      check_text(job_.sections.publish.quality->perplexity.text, job_.sections.publish.quality->perplexity.context,
                 job_.sections.publish.quality->origin);
  }

  // Refuses patterns for the outputs to compare that match none.
  void check_compared() {
    if (!job_.sections.publish.quality) return;
    for (const Pattern& pattern : job_.sections.publish.quality->outputs) {
      QualityOptions alone = *job_.sections.publish.quality;
      alone.outputs = {pattern};
      if (!compares_any(alone))
        errors_.add(error_at(job_.sections.publish.quality->origin,
                             fmt::format("no output matches {}", quoted_name(pattern.text())),
                             "`outputs` are patterns for the file names of outputs other than `against`"));
    }
  }

  bool compares_any(const QualityOptions& quality) {
    for (const JobPart& part : outputs_.parts()) {
      const Result<const Plan*> plan = outputs_.plan_of(part);
      if (!plan) return true;  // reported with the outputs
      for (std::size_t i = 0; i < part.job.outputs.size(); ++i)
        if (is_compared(quality, job_, part.job.outputs[i], plan.value()->outputs[i].files.front().path)) return true;
    }
    return false;
  }

  // Refuses outputs on servers that a program of this machine would have to read.
  void check_local() {
    const auto check = [&](const std::string& path, const Origin& origin) {
      if (is_address(path))
        errors_.add(error_at(origin,
                             fmt::format("{} is not a local file, so the program cannot read it", quoted_name(path)),
                             "write it to a local file"));
    };
    for (const ImportanceComputation& each : outputs_.computations()) check(each.model, each.origin);
    if (!job_.sections.publish.quality) return;
    for (const JobOutput& output : job_.outputs)
      if (const std::string target = output.sink->target();
          is_base(*job_.sections.publish.quality, job_, output) ||
          is_compared(*job_.sections.publish.quality, job_, output, target))
        check(target, job_.sections.publish.quality->origin);
  }

  // Refuses what cannot be done for outputs that are removed after they are sent.
  void check_space(const UploadOptions& upload) {
    if (job_.sections.publish.quality && errors_.empty())
      if (const JobPart* base = outputs_.part_of(base_of(*job_.sections.publish.quality, job_));
          base != &outputs_.parts().front())
        errors_.add(error_at(job_.sections.publish.quality->origin,
                             fmt::format("{} is written after others have been removed, so they cannot be compared "
                                         "with it",
                                         quoted_name(base_of(*job_.sections.publish.quality, job_))),
                             "make it the first output, without `quantize`, or remove `space` from upload"));
    if (job_.report)
      errors_.add(error_at(upload.origin, "a report is about outputs of one read, but `space` divides them",
                           "remove `report` or `space`"));
    for (const JobPart& part : outputs_.parts()) {
      if (*upload.space == 0) break;
      const Result<const Plan*> plan = outputs_.plan_of(part);
      if (!plan) return;  // reported with the outputs
      for (const PlannedOutput& output : plan.value()->outputs) {
        std::uint64_t bytes = 0;
        for (const OutputFile& file : output.files) bytes += file.bytes;
        if (bytes > *upload.space)
          errors_.add(
              error_at(upload.origin,
                       fmt::format("{} alone has {}, more than the space of {}", quoted_name(output.files.front().path),
                                   human_bytes(bytes), human_bytes(*upload.space)),
                       "give the outputs more space, or one output at a time that of the largest: space: largest"));
      }
    }
  }

  // Refuses paths that two steps write, or that one writes and another reads.
  void check_paths() {
    std::vector<WrittenPath> written;
    std::vector<std::string> read;
    for (const JobPart& part : outputs_.parts()) {
      const Result<const Plan*> plan = outputs_.plan_of(part);
      if (!plan) return errors_.add(plan.error());
      BatchFiles files;
      files.add(*plan.value());
      written.insert(written.end(), files.written.begin(), files.written.end());
      // The result of a computation is both written and read.
      for (const std::string& path : files.read)
        if (std::ranges::none_of(outputs_.computations(), [&](const auto& one) { return one.result_path() == path; }))
          read.push_back(path);
    }
    for (const ImportanceComputation& each : outputs_.computations()) {
      written.push_back({each.result_path(), "importance matrix", each.origin});
    }
    add_other_reads(read);
    if (job_.sections.publish.quality) {
      if (!job_.sections.publish.quality->json.empty())
        written.push_back({job_.sections.publish.quality->json, "quality", job_.sections.publish.quality->origin});
    }
    if (job_.sections.publish.card)
      written.push_back({job_.sections.publish.card->path, "card", job_.sections.publish.card->origin});
    if (job_.sections.publish.presets)
      for (const std::string& path : paths_of(*job_.sections.publish.presets))
        written.push_back({path, "preset", job_.sections.publish.presets->origin});
    if (job_.sections.publish.attestation)
      written.push_back(
          {job_.sections.publish.attestation->path, "attestation", job_.sections.publish.attestation->origin});
    check_distinct(written, read, errors_);
    check_results();
  }

  // Returns true if a file exists that no step has written: the card of a source in the same folder is not the one that
  // an earlier run wrote there.
  bool is_of_others(const std::string& path) const { return is_file(path) && !files_.check(path, false); }

  // Adds what the steps read in addition to the plans: templates, texts, and programs, with the modules of this one.
  void add_other_reads(std::vector<std::string>& read) {
    const auto add_program = [&](const std::string& word) {
      if (auto program = find_program(word)) read.push_back(std::move(*program));
    };
    for (const ImportanceComputation& each : outputs_.computations()) {
      read.push_back(each.text);
      add_program(each.program);
    }
    if (job_.sections.publish.quality) {
      read.push_back(job_.sections.publish.quality->perplexity.text);
      add_program(job_.sections.publish.quality->perplexity.program);
    }
    for (const JobOutput& output : job_.outputs)
      if (!output.sections.publish.after.command.empty()) add_program(output.sections.publish.after.command.front());
    if (!job_.sections.publish.after.command.empty()) add_program(job_.sections.publish.after.command.front());
    if (job_.sections.publish.card && !job_.sections.publish.card->card_template.empty())
      read.push_back(job_.sections.publish.card->card_template);
    if (job_.sections.publish.card)
      if (const Result<const Plan*> plan = outputs_.plan_of(outputs_.parts().front()); plan)
        if (std::string base = base_card_path(*plan.value()); is_of_others(base)) read.push_back(std::move(base));
    if (job_.sections.publish.attestation && !job_.sections.publish.attestation->key.empty())
      read.push_back(job_.sections.publish.attestation->key);
    const std::vector<std::string> modules = context_.kernels().files();
    read.insert(read.end(), modules.begin(), modules.end());
    if (std::string own = own_program(); !own.empty()) read.push_back(std::move(own));
  }

  // Refuses files that exist and were not written by an earlier run.
  void check_results() {
    std::vector<std::string> paths;
    for (const ImportanceComputation& each : outputs_.computations()) paths.push_back(each.result_path());
    if (job_.sections.publish.quality && !job_.sections.publish.quality->json.empty())
      paths.push_back(job_.sections.publish.quality->json);
    if (job_.sections.publish.card) paths.push_back(job_.sections.publish.card->path);
    if (job_.sections.publish.presets)
      for (std::string& path : paths_of(*job_.sections.publish.presets)) paths.push_back(std::move(path));
    if (job_.sections.publish.attestation) paths.push_back(job_.sections.publish.attestation->path);
    for (const std::string& path : paths)
      if (const Status free = files_.check(path, batch_.run.overwrite); !free) errors_.add(free.error());
  }

  const Context& context_;
  const std::string& source_;
  JobOutputs& outputs_;
  const Job& job_;
  const BatchOptions& batch_;
  Diagnostics& errors_;
  StepFiles files_;
};

}  // namespace

void check_steps(const Context& context, const std::string& source, JobOutputs& outputs, const BatchOptions& batch,
                 Diagnostics& errors) {
  StepChecks(context, source, outputs, batch, errors).check();
}

std::vector<Error> check_steps(const Context& context, const BatchJob& job, const StepOptions& options) {
  Diagnostics errors;
  JobOutputs outputs(context, job.job);
  check_steps(context, job.source, outputs, options.batch, errors);
  if (errors.empty() && outputs.job().sections.publish.upload)
    if (UploadStep upload(*outputs.job().sections.publish.upload, outputs); !upload.is_done())
      if (const Status access = upload.check_access(options.batch.run.overwrite, nullptr); !access)
        errors.add(access.error());
  return errors.errors();
}

}  // namespace ggufmill
