// `ggufmill status`: shows the progress of a pipeline file's runs, and the leftover files of interrupted ones.

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/cluster_status.h"
#include "pipeline/cli/measuring.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/cluster_array.h"
#include "pipeline/io/remote/address.h"

namespace ggufmill {
namespace {

CommandSpec status_command() {
  CommandSpec spec;
  spec.usage = "ggufmill status (FILE | FOLDER) [options]";
  spec.description =
      "Show which outputs of a pipeline file exist, whether a run is writing them now and its progress, and the "
      "leftover files of interrupted runs: `run` resumes from them, `run --discard` removes them. Prints the folder of "
      "a cluster job that writes the same outputs. Reads only headers and changes nothing.\n\nFor the folder of a "
      "cluster job, show the progress of its parts. Exit code 0: the outputs are sealed; 1: the job is running; 2: it "
      "is not running, and `ggufmill resume FOLDER` continues it.";
  spec.examples =
      "  ggufmill status job.yaml\n"
      "  ggufmill status job.yaml --json\n"
      "  ggufmill status llama.job --watch";
  spec.positional = "file";
  add_job_options(spec.options);
  spec.options.add_options()(
      "json",
      "print one JSON object: {running, can_resume, units, units_done, outputs, leftovers, "
      "cluster_jobs}, for a batch {sources: [{source, running, ...}]}; "
      "for a cluster job {folder, state, done, part_done, seal, parts}, for a matrix also {jobs}")(
      "watch", "for a cluster job: update every two seconds until it is no longer running");
  return spec;
}

std::set<std::string> sent_files(const Planned& planned) {
  return planned.with_steps ? sent_files(planned.context, *planned.with_steps) : std::set<std::string>();
}

std::string progress_of(const Leftovers& left) {
  const std::uint64_t done = left.units_done.value_or(0);
  return fmt::format("{} of {} units of work are done ({:.0f} %)", done, left.units,
                     left.units ? 100.0 * static_cast<double>(done) / static_cast<double>(left.units) : 100.0);
}

std::string state_of(const Leftovers& left) {
  if (left.is_running()) return "a run is writing the outputs now: " + progress_of(left);
  if (left.can_resume()) return fmt::format("a run was interrupted: {}; `run` resumes from there", progress_of(left));
  const std::vector<std::string> jobs = left.cluster_jobs();
  if (jobs.empty()) return "no run is active";
  std::string text;
  for (const std::string& job : jobs)
    text += fmt::format("{0}the cluster job in {1} writes the outputs: `ggufmill status {1}` reports its progress",
                        text.empty() ? "" : "\n", job);
  return text;
}

void print_status(const Planned& planned) {
  const Plan& plan = planned.plan;
  const Leftovers left = planned.context.leftovers(plan);
  const std::set<std::string> sent = sent_files(planned);
  std::vector<Row> rows;
  bool all_measured = true;
  for (const PlannedOutput& output : plan.outputs) {
    all_measured = all_measured && is_measured(output);
    for (const OutputFile& file : output.files) {
      const std::optional<bool> exists = output_exists(file.path);
      const char* const state = !exists                    ? "unknown"
                                : *exists                  ? "exists"
                                : sent.contains(file.path) ? "sent"
                                                           : "missing";
      rows.push_back({remote::without_secrets(file.path), is_measured(output) ? human_bytes(file.bytes) : "-", state});
    }
  }
  std::fputs(render_table({name_column("output"), {"size", Align::kRight}, {"state"}}, rows).c_str(), stdout);
  if (!all_measured) std::puts("the target is not measured yet, so the sizes are unknown");
  std::puts(state_of(left).c_str());
  for (const Leftover& file : left.files)
    std::puts(fmt::format("{}  {}", describe(file), human_bytes(file.bytes)).c_str());
}

int status_verb(const Parsed& parsed) {
  const bool as_json = parsed.values.count("json") > 0;
  if (const auto folder = parsed.values["file"].as<std::string>(); is_array_folder(folder))
    return cluster_status(folder, as_json, parsed.values.count("watch") > 0);
  if (parsed.values.count("watch"))
    return fail(usage_error("--watch requires the folder of a cluster job", "a run shows its own progress"));
  JsonOfPlans all;
  const int code = for_each_plan(parsed.values, [&](const Planned& planned) {
    if (as_json)
      all.add(planned,
              describe_status(planned.context, planned.plan, planned.with_steps ? &*planned.with_steps : nullptr));
    else
      print_status(planned);
    if (as_json || !planned.with_steps) return 0;
    std::puts("");
    const Status printed = print_steps(planned.context, *planned.with_steps);
    return printed ? 0 : fail(printed.error());
  });
  all.print();
  return code;
}

}  // namespace

const Verb kStatusVerb{"status", OperationGroup::kConvert,
                       "Show the progress of pipeline files and cluster jobs, and leftover files", status_command,
                       status_verb};

}  // namespace ggufmill
