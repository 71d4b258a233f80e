#include "pipeline/api/operations/run_pipeline.h"

#include <fmt/format.h>

#include <map>

#include "pipeline/api/job_steps.h"
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/reports.h"
#include "pipeline/api/table.h"
#include "pipeline/core/json.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/graph/profile.h"
#include "pipeline/graph/profile_picture.h"
#include "pipeline/io/machine.h"

namespace ggufmill {
namespace {

constexpr std::string_view kEngineWords[] = {"graph", "simple"};                // EngineKind
constexpr std::string_view kIoEngineWords[] = {"auto", "io_uring", "threads"};  // IoKind

std::string summary(const PlannedOutput& output, const OutputFile& file) {
  if (file.tensors.empty()) return fmt::format("{}  {}, no tensors", file.path, human_bytes(file.bytes));
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  for (const Placement& placement : file.tensors) {
    bytes += placement.bytes;
    elements += output.tensors[placement.tensor].shape.elements();
  }
  const double bits = elements ? 8.0 * static_cast<double>(bytes) / static_cast<double>(elements) : 0;
  return fmt::format("{}  {}, {}, {:.2f} bits per weight", file.path, human_bytes(file.bytes),
                     counted(file.tensors.size(), "tensor"), bits);
}

}  // namespace

std::vector<Message> run_notes(const Plan& plan, const RunReport& report) {
  std::vector<Message> notes;
  const double megabytes = static_cast<double>(report.bytes_read + report.bytes_written) / 1e6;
  for (const PlannedOutput& output : plan.outputs) {
    for (const OutputFile& file : output.files) notes.push_back({"wrote " + summary(output, file)});
    if (const std::string fallbacks = describe_fallbacks(output); !fallbacks.empty())
      notes.push_back({fmt::format("{}  {}", output.files.front().path, fallbacks)});
  }
  if (report.units_kept != 0)
    notes.push_back(
        {fmt::format("{} of {} units of work were done by an earlier run", report.units_kept, plan.units.size())});
  if (report.io.empty()) return notes;  // nothing was read or written
  notes.push_back({fmt::format("read {} once, wrote {} in {:.2f} s ({:.0f} MB/s), {} of buffers at most, {} I/O by {}",
                               human_bytes(report.bytes_read), human_bytes(report.bytes_written), report.seconds,
                               report.seconds > 0 ? megabytes / report.seconds : 0, human_bytes(report.peak_budget),
                               io_mode_names()[static_cast<std::size_t>(report.io_mode)], report.io)});
  return notes;
}

std::string describe(const Leftover& file) {
  const bool is_journal = !file.other_since.empty();
  const std::string whose = !file.cluster_job.empty() ? "of the cluster job in " + file.cluster_job
                            : file.is_in_use          ? "being written by a run now"
                            : file.of_this_plan       ? "left by a run of this plan"
                            : is_journal              ? "left by a run of another plan: " + file.other_since
                                                      : "left by a run of another plan";
  return fmt::format("{}  {}", file.path, whose);
}

std::vector<Message> foreign_notes(const Leftovers& left) {
  std::vector<Message> notes;
  for (const Leftover& file : left.files)
    if (!file.of_this_plan && !file.is_in_use && file.cluster_job.empty())
      notes.push_back({fmt::format("{} ({}); {} removes it", describe(file), human_bytes(file.bytes),
                                   option_reference("discard"))});
  return notes;
}

namespace {

// Formats a share of the time as a percentage.
std::string part(double of, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * of / whole) : ""; }

void add_rows(std::vector<Row>& rows, const Profile::Sums& sums, double whole, const char* whose) {
  for (std::size_t i = 0; i < kProfileSteps; ++i) {
    const Profile::Sum& sum = sums[i];
    if (sum.calls == 0) continue;
    rows.push_back({name_of(static_cast<ProfileStep>(i)), with_commas(sum.calls), fmt::format("{:.3f}", sum.seconds),
                    part(sum.seconds, whole), whose});
  }
}

std::vector<Row> rows_of(const Profile::Summary& sums) {
  constexpr const char* kOfThreads = "of the threads' time";
  const double of_threads = sums.wall * sums.threads;
  std::vector<Row> rows;
  add_rows(rows, sums.worked, of_threads, kOfThreads);
  rows.push_back({"wait", "", fmt::format("{:.3f}", sums.wait), part(sums.wait, of_threads), kOfThreads});
  // Transfers overlap, so more than 100 % is possible.
  add_rows(rows, sums.transferred, sums.wall, "of the run's time, in the background");
  add_rows(rows, sums.alone, sums.wall, "of the run's time, by one thread at a time");
  return rows;
}

}  // namespace

std::vector<Message> profile_notes(const Plan& plan, const Profile& profile, const RunReport& report) {
  std::vector<Message> notes;
  const Profile::Summary sums = profile.summary();
  notes.push_back(
      {fmt::format("{:.3f} s on {} ({})", sums.wall, counted(sums.threads, "thread"),
                   plan.limits.threads == 0 ? "auto: " + describe(cpu_limits()) : "as requested"),
       render_table({{"step"}, {"calls", Align::kRight}, {"seconds", Align::kRight}, {"part", Align::kRight}, {""}},
                    rows_of(sums))});
  if (sums.wall > 0) {
    const ProfilePicture picture = draw(profile);
    notes.push_back({describe_idle(sums)});
    notes.push_back({picture.bars});
    if (!picture.reasons.empty()) notes.push_back({picture.reasons});
  }
  const double alone = Profile::seconds_of(sums.alone), gigabytes = static_cast<double>(report.bytes_read) / 1e9;
  if (alone > 0 && gigabytes > 0)
    notes.push_back(
        {fmt::format("one thread at a time: {:.2f} ms per GB read, which allows {:.0f} GB/s with enough threads",
                     1e3 * alone / gigabytes, gigabytes / alone)});
  for (const std::string& finding : profile.findings()) notes.push_back({finding});
  return notes;
}

std::vector<Message> tensor_messages(const PlannedOutput& output) {
  std::vector<Message> messages;
  const std::vector<PlannedTensor>& tensors = output.tensors;
  std::size_t index = 0;
  for (const PlannedTensor& tensor : tensors) {
    std::string line = fmt::format("[{:4}/{:4}] {:<36} - [{}], {}", ++index, tensors.size(), tensor.name,
                                   describe(tensor.shape), tensor.source_type->name);
    if (tensor.type != tensor.source_type)
      line += fmt::format(" -> {}, {} -> {}", tensor.type->name, human_bytes(tensor.source_bytes),
                          human_bytes(tensor.bytes));
    else
      line += fmt::format(", {}", human_bytes(tensor.source_bytes));
    messages.push_back({line + fmt::format(" ({})", tensor.reason)});
  }
  return messages;
}

Status add_report(const std::vector<std::string>& paths, bool errors, std::optional<ReportRequest>& report) {
  if (errors || !paths.empty())
    if (!report) report.emplace();
  if (errors) report->error = true;
  std::map<bool, std::string> given;  // key: true for an HTML page
  for (const std::string& path : paths) {
    const std::string written = fmt::format("{} {}", option_reference("report"), quoted_name(path));
    const bool is_page = path.ends_with(".html");
    if (!is_page && !path.ends_with(".json"))
      return usage_error(
          fmt::format("{} is neither an .html nor a .json file", written),
          fmt::format("the file name extension selects the format: {}", option_reference("report", "report.html")));
    const auto [first, is_new] = given.emplace(is_page, path);
    if (!is_new)
      return usage_error(fmt::format("{} {} and {} have the same format", option_reference("report"),
                                     quoted_name(first->second), written),
                         "a run writes at most one .html and one .json report");
    (is_page ? report->html : report->json) = path;
  }
  return ok();
}

namespace {

std::vector<RunFile> files_in(const Plan& plan) {
  std::vector<RunFile> files;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) files.push_back({file.path, file.bytes, file.tensors.size()});
  return files;
}

Result<Plan> planned(const Context& context, const RunRequest& request, const std::string& pipeline,
                     const PipelineHooks& hooks) {
  BOOST_OUTCOME_TRY(Job job, context.parse_job(pipeline, std::string(kArgumentsName)));
  for (JobOutput& output : job.outputs) output.origin = {};  // the path is an option, and in no file
  job.inputs = hooks.inputs;
  job.trace = request.profile;
  BOOST_OUTCOME_TRY(add_report(request.report, request.errors, job.report));
  return context.plan(with_known_importance(context, job));
}

}  // namespace

RunOptions engine_options(const RunRequest& request, const Call& call) {
  RunOptions options;
  options.engine = request.engine;
  options.io = request.io_engine;
  options.overwrite = request.overwrite;
  options.resume = request.resume;
  options.stop = call.stop();
  options.starts_over = call.warn;
  return options;
}

Status discard_leftovers(const Context& context, const Plan& plan, const Call& call) {
  const Leftovers left = context.leftovers(plan);
  BOOST_OUTCOME_TRY(context.discard(left));
  for (const Leftover& file : left.files)
    if (file.is_in_use)
      call.warn(fmt::format("kept {}: a run is writing it now", file.path));
    else
      call.note({fmt::format("removed {}  {}", file.path, human_bytes(file.bytes))});
  if (left.files.empty()) call.note({"there are no leftover files of earlier runs"});
  return ok();
}

Result<Report> run_plan(const Context& context, const RunRequest& request, const Plan& plan, const Call& call) {
  if (call.shows_notes)
    for (const Message& note : foreign_notes(context.leftovers(plan))) call.note(note);
  RunOptions options = engine_options(request, call);
  if (call.run_progress) options.progress = [&](const Progress& now) { call.run_progress(plan, now); };
  std::optional<Profile> profile;
  if (!plan.trace.empty()) options.profile = &profile.emplace();
  BOOST_OUTCOME_TRY(const RunReport done, context.run(plan, options));
  call.warn_all(done.warnings);
  for (const Message& note : run_notes(plan, done)) call.note(note);
  if (profile)
    for (const Message& note : profile_notes(plan, *profile, done)) call.note(note);
  if (!plan.trace.empty()) call.note({"wrote " + plan.trace + "  trace; open it at https://ui.perfetto.dev"});
  for (const std::string& path : {plan.report.json, plan.report.html})
    if (!path.empty()) call.note({"wrote " + path + "  report"});
  return context.report_of(plan, done);
}

namespace {

Result<Answer<PipelineRun>> run_made_pipeline(const Context& context, const RunRequest& request,
                                              const std::string& pipeline, const Call& call,
                                              const PipelineHooks& hooks) {
  Answer<PipelineRun> answer{};
  PipelineRun& made = answer.value;
  if (request.emit_pipeline) {
    made.pipeline = pipeline;
    return answer;
  }
  BOOST_OUTCOME_TRY(const Plan plan, planned(context, request, pipeline, hooks));
  call.warn_all(plan.warnings);
  if (hooks.planned) {
    BOOST_OUTCOME_TRY(hooks.planned(plan));
  }
  if (request.discard) {
    BOOST_OUTCOME_TRY(discard_leftovers(context, plan, call));
    return answer;
  }
  made.files = files_in(plan);
  made.is_dry = request.dry_run;
  if (request.dry_run) {
    for (const PlannedOutput& output : plan.outputs)
      for (const Error& problem : output.problems)
        call.warn(problem.where.empty() && !problem.detail.empty() ? problem.what + ": " + problem.detail
                                                                   : problem.what);
    for (const PlannedOutput& output : plan.outputs)
      if (const std::string fallbacks = describe_fallbacks(output); !fallbacks.empty()) call.warn(fallbacks);
    return answer;
  }
  BOOST_OUTCOME_TRY(made.report, run_plan(context, request, plan, call));
  if (hooks.done) {
    BOOST_OUTCOME_TRY(hooks.done(plan));
  }
  return answer;
}

boost::json::value json_of_report(const Report& report) {
  std::string text;
  report_json(report, [&](std::string_view piece) { text += piece; });
  auto parsed = parse_json("report", text);
  return parsed ? std::move(parsed).value() : boost::json::value();
}

}  // namespace

std::vector<Option<RunRequest>> run_options() {
  using Run = RunRequest;
  return std::vector<Option<RunRequest>>{
             option("overwrite", &Run::overwrite, "replace existing outputs"),
             option("dry_run", &Run::dry_run, "list the files without writing anything"),
             option("emit_pipeline", &Run::emit_pipeline, "give the equivalent pipeline file instead of running it")} +
         engine_rows();
}

std::vector<Option<RunRequest>> engine_rows() {
  using Run = RunRequest;
  return {
      option("engine", &Run::engine, enumeration<EngineKind>(kEngineWords),
             "graph, or simple (processes one slab at a time)"),
      option("io_engine", &Run::io_engine, enumeration<IoKind>(kIoEngineWords), "auto, io_uring, or threads"),
      option("profile", &Run::profile, path(), "FILE.json: print where the time went and write a trace for Perfetto"),
      option("resume", &Run::resume, "resume an earlier, unfinished run, and keep what is done if interrupted")
          .as_flags({{"no-resume", "false",
                      "start over, ignoring leftover files of earlier runs, and leave none if interrupted"}}),
      option("discard", &Run::discard, "remove the leftover files of interrupted runs, and do nothing else"),
      option("report", &Run::report, list_of(path()),
             "FILE.html or FILE.json: write a report of the run; may be given once for each format"),
      option("errors", &Run::errors, "measure the error of each tensor, for the report (report.error)")};
}

Status check_run(const RunRequest& request) {
  if (!request.dry_run) return ok();
  const std::pair<const char*, bool> given[] = {{"report", !request.report.empty()},
                                                {"errors", request.errors},
                                                {"profile", !request.profile.empty()},
                                                {"discard", request.discard}};
  for (const auto& [name, is_given] : given)
    if (is_given) return cannot_be_together(name, "dry_run");
  return ok();
}

ResultForm<PipelineRun> pipeline_result() {
  namespace json = boost::json;
  const auto none = std::optional<json::value>();
  return {
      {result<PipelineRun>(
           "files",
           [none](const PipelineRun& run) {
             if (!run.files) return none;
             json::array files;
             for (const RunFile& file : *run.files)
               files.push_back(json::object{{"path", file.path}, {"bytes", file.bytes}, {"tensors", file.tensors}});
             return std::optional<json::value>(std::move(files));
           },
           "the files of the outputs: [{path, bytes, tensors}]"),
       result<PipelineRun>(
           "report",
           [none](const PipelineRun& run) { return run.report ? std::optional(json_of_report(*run.report)) : none; },
           "the report of the run, in the format of report files"),
       result<PipelineRun>(
           "pipeline",
           [none](const PipelineRun& run) { return run.pipeline ? std::optional(json::value(*run.pipeline)) : none; },
           "the text of the pipeline file; only with @emit_pipeline")}};
}

Result<Answer<PipelineRun>> run_pipeline(const Context& context, const RunRequest& request, const std::string& pipeline,
                                         const Call& call, const PipelineHooks& hooks) {
  auto answer = run_made_pipeline(context, request, pipeline, call, hooks);
  if (!answer) return with_help_for_options(answer.error());
  return answer;
}

std::function<Status(const Plan&)> note_tensors(const Call& call) {
  return [&call](const Plan& plan) -> Status {
    for (const Message& message : tensor_messages(plan.outputs.front())) call.note(message);
    return ok();
  };
}

void print_run(const PipelineRun& run, bool details, TextOutput& to) {
  to.out = run.pipeline.value_or("");
  for (const std::string& name : run.classes.value_or(std::vector<std::string>())) to.out += name + "\n";
  if (!run.is_dry || !run.files) return;
  for (const RunFile& file : *run.files) {
    to.out += details ? printable(file.path) : file.path;
    to.out += details ? fmt::format("  {}, {}\n", counted(file.tensors, "tensor"), human_bytes(file.bytes)) : "\n";
  }
}

}  // namespace ggufmill
