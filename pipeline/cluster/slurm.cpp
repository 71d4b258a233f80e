#include "pipeline/cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <sstream>

#include "pipeline/api/reports.h"
#include "pipeline/cluster/submit.h"
#include "pipeline/core/record.h"
#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr int kMaxRestarts = 20;  // times that a part's script requeues the part
// Seconds before the time limit at which a part is asked to end, so that it can finish the slabs in progress and flush.
constexpr int kLeadSeconds = 60;
constexpr std::chrono::seconds kSlurmPatience{60};  // its own time limit for a message is 10 s by default

// Escapes a path for Slurm, which treats % in file names as the start of a pattern.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

// Only what programs need to start, and to find servers: not the submitter's entire environment.
std::string exported_variables() {
  std::string names = "HOME,PATH,LD_LIBRARY_PATH";
  for (const char* name : server_variables())
    if (std::getenv(name)) names += fmt::format(",{}", name);
  return names;
}

std::vector<std::string> common_arguments(const ClusterArray& array, const std::string& what) {
  const ClusterJob& job = array.jobs.front();
  const ClusterOptions& options = job.options;
  std::vector<std::string> words{"sbatch",
                                 "--parsable",
                                 fmt::format("--job-name=ggufmill-{}-{}", what, job.name),
                                 "--nodes=1",
                                 "--ntasks=1",
                                 "--chdir=" + job.working_folder,
                                 "--open-mode=append",
                                 "--requeue",
                                 "--export=" + exported_variables()};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", name, value));
  };
  add("partition", options.partition);
  add("account", options.account);
  add("time", options.time);
  add("constraint", options.constraint);
  if (options.cpus != 0) add("cpus-per-task", std::to_string(options.cpus));
  if (options.memory != 0) add("mem", fmt::format("{}M", options.memory >> 20));
  words.insert(words.end(), options.options.begin(), options.options.end());
  return words;
}

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == text.npos;
}

// Returns true for the number of a job: from 1, in 32 bits, without leading zeros. Anything else would be an option, or
// another name, to Slurm's commands.
bool is_job_id(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.starts_with('0');
}

const RecordForm<Submission>& submission_form() {
  // The number of a job, or empty if there is none.
  const auto id = checked_kind(UsualKind<std::string>::make(), [](const std::string& text, std::string_view name) {
    if (!text.empty() && !is_job_id(text))
      throw InvalidJson{fmt::format("'{}' is {}, not the number of a job", name, quoted_name(text, 40))};
  });
  const auto indices = checked_kind(UsualKind<std::string>::make(), [](const std::string& text, std::string_view name) {
    if (!has_only(text, "0123456789,-"))
      throw InvalidJson{fmt::format("'{}' is {}, not a list of parts", name, quoted_name(text, 40))};
  });
  static const RecordForm<Submission> form{member("parts", &Submission::parts_id, id),
                                           member("indices", &Submission::indices, indices),
                                           member("seal", &Submission::seal_id, id)};
  return form;
}

Submission submission_of(const json::value& value) {
  Submission read = submission_form().read(value);
  if (read.parts_id.empty() && read.seal_id.empty()) throw InvalidJson{"a submission has neither 'parts' nor a 'seal'"};
  return read;
}

Status write_submissions(const ClusterArray& array, const std::vector<Submission>& submissions) {
  const json::object object{{"engine", "slurm"}, {"submissions", submission_form().list().write(submissions)}};
  return write_own_text(array.file("engine.json"), json::serialize(object) + "\n", true);
}

// Parses the output of `sbatch --parsable`: "123" or "123;cluster", followed by a newline.
Result<std::string> job_id(const std::string& out) {
  const std::string id = out.substr(0, out.find_first_of(";\n"));
  if (is_job_id(id)) return id;
  return Error{ExitCode::kIo, "", fmt::format("sbatch printed '{}', not a job number", id), "", ""};
}

// Runs a command of Slurm that may be repeated. Neither a controller nor a file system that hangs may hold this
// program.
Result<CommandResult> ask_slurm(const std::vector<std::string>& words) {
  return run_command(words, {.time_limit = kSlurmPatience, .help = "check that Slurm responds: `scontrol ping`"});
}

struct QueueLine {
  std::string id, state, reason;
};

// Queries squeue for a job. An array has one line per task. Returns no lines if Slurm has forgotten the job.
Result<std::vector<QueueLine>> look_at_queue(const std::string& id) {
  BOOST_OUTCOME_TRY(const CommandResult result,
                    ask_slurm({"squeue", "-h", "-r", "-a", "-t", "all", "-o", "%i %T %r", "-j", id}));
  std::vector<QueueLine> lines;
  if (result.exit_code != 0) {
    if (result.err.find("Invalid job id") != result.err.npos) return lines;
    return Error{ExitCode::kIo, "", fmt::format("squeue exited with code {}", result.exit_code), result.err, ""};
  }
  std::istringstream text(result.out);
  text.exceptions(std::ios::badbit);  // lets std::bad_alloc through
  for (std::string line; std::getline(text, line);) {
    QueueLine read;
    std::istringstream words(line);
    words.exceptions(std::ios::badbit);  // lets std::bad_alloc through
    if (words >> read.id >> read.state && std::getline(words >> std::ws, read.reason)) lines.push_back(std::move(read));
  }
  return lines;
}

}  // namespace

std::string part_script(const ClusterArray& array, const std::string& program) {
  return fmt::format(R"(#!/bin/bash
# A part of a ggufmill job, created by `ggufmill submit`. Exit code 75: the part can be retried and will then resume.
# Slurm sends USR1 before the time limit: the part shuts down cleanly, and this script requeues it.
# TERM comes from scancel or preemption: Slurm itself decides what happens to the part.
trap 'kill -TERM "$child"' USR1
trap 'terminated=1; kill -TERM "$child"' TERM
{0} part --quiet --plan {1} --part-env SLURM_ARRAY_TASK_ID &
child=$!
wait "$child"
code=$?
if [ "$code" -gt 128 ]; then # this script received a signal, or the part was killed
  wait "$child" 2>/dev/null
  again=$?
  [ "$again" = 127 ] || code=$again
fi
if [ "$code" = 75 ] && [ -z "$terminated" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {2} ]; then
  # Requeue a single task: the job ID alone would mean the whole array.
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}" && sleep 300 # until Slurm ends this script
fi
exit "$code"
)",
                     shell_word(program), shell_word(array.plan_file()), kMaxRestarts);
}

std::string seal_script(const ClusterArray& array, const std::string& program) {
  // On network file systems, attribute caches may hide the markers of parts on other nodes for up to a minute.
  return fmt::format(
      "#!/bin/bash\n# The seal of a ggufmill job, created by `ggufmill submit`.\nexec {} seal --plan {} --wait 5m\n",
      shell_word(program), shell_word(array.plan_file()));
}

std::vector<std::string> parts_command(const ClusterArray& array, const std::vector<std::size_t>& parts) {
  std::vector<std::string> words = common_arguments(array, "parts");
  std::string indices = index_list(parts);
  if (const unsigned most = array.jobs.front().options.max_parallel; most != 0) indices += fmt::format("%{}", most);
  words.push_back("--array=" + indices);
  words.push_back(fmt::format("--signal=B:USR1@{}", kLeadSeconds));
  words.push_back("--output=" + escaped(array.file("log")) + "/part-%a.log");
  words.push_back(array.file("part.sh"));
  return words;
}

std::vector<std::string> seal_command(const ClusterArray& array, const std::string& after) {
  std::vector<std::string> words = common_arguments(array, "seal");
  if (!after.empty() && array.is_matrix)
    words.push_back("--dependency=afterany:" + after);  // a failed source does not block the outputs of the others
  else if (!after.empty()) {
    words.push_back("--dependency=afterok:" + after);
    words.emplace_back("--kill-on-invalid-dep=yes");  // otherwise it would wait forever after a part failed
  }
  words.push_back("--output=" + escaped(array.file("log")) + "/seal.log");
  words.push_back(array.file("seal.sh"));
  return words;
}

Result<std::vector<Submission>> read_submissions(const ClusterArray& array) {
  const std::string path = array.file("engine.json");
  std::vector<Submission> submissions;
  // Without the file, nothing was submitted. An existing file must be readable: it lists the jobs to cancel.
  if (FileStatus ignored; !get_status(kCurrentFolder, path, Links::kNoFollow, ignored)) return submissions;
  constexpr const char* kHelp = "remove the file if no part of the job is queued or runs; `squeue` lists them";
  auto read = read_json(path);
  if (!read) {
    Error error = read.error();
    error.help = kHelp;
    return error;
  }
  try {
    for (const json::value& one : needed_list(read.value(), "submissions")) submissions.push_back(submission_of(one));
  } catch (const InvalidJson& error) {
    return input_error(path, "not valid: " + error.what, kHelp);
  }
  return submissions;
}

Result<Submission> submit_to_slurm(const ClusterArray& array, const std::vector<std::size_t>& parts,
                                   const std::string& program) {
  BOOST_OUTCOME_TRY(write_own_text(array.file("part.sh"), part_script(array, program), true));
  BOOST_OUTCOME_TRY(write_own_text(array.file("seal.sh"), seal_script(array, program), true));
  BOOST_OUTCOME_TRY(std::vector<Submission> submissions, read_submissions(array));
  Submission& now = submissions.emplace_back();
  now.indices = index_list(parts);
  if (!parts.empty()) {
    BOOST_OUTCOME_TRY(const std::string out, output_of(parts_command(array, parts)));
    BOOST_OUTCOME_TRY(now.parts_id, job_id(out));
    BOOST_OUTCOME_TRY(write_submissions(array, submissions));  // the array stays known even if later steps fail
  }
  const auto out = output_of(seal_command(array, now.parts_id));
  const auto id = out ? job_id(out.value()) : Result<std::string>(out.error());
  if (!id) {
    if (!now.parts_id.empty()) static_cast<void>(run_command({"scancel", now.parts_id}));
    return id.error();
  }
  now.seal_id = id.value();
  BOOST_OUTCOME_TRY(write_submissions(array, submissions));
  return now;
}

bool SlurmTask::is_active() const {
  constexpr std::array<std::string_view, 9> kActive{"PENDING",  "RUNNING",  "CONFIGURING", "COMPLETING", "SUSPENDED",
                                                    "RESIZING", "REQUEUED", "STAGE_OUT",   "SIGNALING"};
  return std::ranges::find(kActive, state) != kActive.end() && reason != "DependencyNeverSatisfied" &&
         reason != "JobHeldUser" && reason != "JobHeldAdmin";
}

bool SlurmView::is_active() const {
  return (seal && seal->is_active()) ||
         std::ranges::any_of(parts, [](const auto& part) { return part.second.is_active(); });
}

Result<SlurmView> look_at_slurm(const ClusterArray& array) {
  BOOST_OUTCOME_TRY(const std::vector<Submission> submissions, read_submissions(array));
  SlurmView view;
  for (const Submission& one : submissions) {
    if (!one.parts_id.empty()) {
      BOOST_OUTCOME_TRY(const auto lines, look_at_queue(one.parts_id));
      for (const QueueLine& line : lines) {
        const std::size_t mark = line.id.find('_');
        std::size_t part = 0;
        const char* end = line.id.data() + line.id.size();
        if (mark != line.id.npos && std::from_chars(line.id.data() + mark + 1, end, part).ptr == end)
          view.parts[part] = {line.state, line.reason};
      }
    }
    view.seal.reset();
    if (one.seal_id.empty()) continue;
    BOOST_OUTCOME_TRY(const auto lines, look_at_queue(one.seal_id));
    if (!lines.empty()) view.seal = SlurmTask{lines.front().state, lines.front().reason};
  }
  return view;
}

Status cancel_in_slurm(const ClusterArray& array) {
  BOOST_OUTCOME_TRY(const std::vector<Submission> submissions, read_submissions(array));
  std::vector<std::string> words{"scancel"};
  // Cancel the seals first: they would start when their parts end.
  for (const Submission& one : submissions)
    if (!one.seal_id.empty()) words.push_back(one.seal_id);
  for (const Submission& one : submissions)
    if (!one.parts_id.empty()) words.push_back(one.parts_id);
  if (words.size() == 1) return ok();
  BOOST_OUTCOME_TRY(const CommandResult result, ask_slurm(words));
  const bool is_gone = result.err.find("Invalid job id") != result.err.npos;
  if (result.exit_code == 0 || is_gone) return ok();
  return Error{ExitCode::kIo, "", fmt::format("scancel exited with code {}", result.exit_code), result.err, ""};
}

}  // namespace ggufmill
