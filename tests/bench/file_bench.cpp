#include "tests/bench/file_bench.h"

#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"
#include "tests/bench/timing.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/sha256.h"

namespace ggufmill::bench {
namespace {

using Command = std::vector<std::string>;

// Measurements by round.
struct Runs {
  std::vector<double> seconds, cpu_seconds, peak_mebibytes;

  ProgramTime medians() const {
    if (seconds.empty()) return {};
    return {median(seconds), median(cpu_seconds), median(peak_mebibytes)};
  }
};

void run(const Command& command, Runs& runs) {
  const ProcessResult result = run_process(command);
  if (result.exit_code != 0) {
    std::string line = "this failed:";
    for (const std::string& word : command) line.append(" ").append(word);
    throw std::runtime_error(line + "\n" + result.err);
  }
  runs.seconds.push_back(result.seconds);
  runs.cpu_seconds.push_back(result.cpu_seconds);
  runs.peak_mebibytes.push_back(static_cast<double>(result.peak_memory_kib) / 1024);
}

// A pipeline file with one output. Its default tensor order is the one that llama-quantize uses.
std::string pipeline(const FileJob& job, const std::string& type, const std::string& output) {
  return "version: 1\nsource: {gguf: '" + job.model + "'}\noutputs:\n  - gguf: '" + output +
         "'\n    quantize: " + type + "\nlimits: {threads: " + std::to_string(job.threads) + "}\n";
}

FileTime time_type(const FileJob& job, const std::string& type) {
  const std::string ours = job.folder + "/ggufmill.gguf", theirs = job.folder + "/llama.gguf";
  const std::string yaml = job.folder + "/job.yaml";
  write_text(yaml, pipeline(job, type, ours));
  const Command our_command = {job.ggufmill, "run", yaml, "--overwrite"};
  const Command their_command = {job.llama_quantize, job.model, theirs, type, std::to_string(job.threads)};
  Runs our_runs, their_runs;
  for (unsigned round = 0; round < job.rounds; ++round) {
    run(our_command, our_runs);
    if (!job.llama_quantize.empty()) run(their_command, their_runs);
  }
  FileTime time{type, our_runs.medians(), their_runs.medians()};
  if (job.llama_quantize.empty()) return time;
  time.ratio = speed_ratio(their_runs.seconds, our_runs.seconds);
  time.cpu_ratio = speed_ratio(their_runs.cpu_seconds, our_runs.cpu_seconds);
  time.same_bytes = sha256_file(ours) == sha256_file(theirs);
  return time;
}

}  // namespace

std::vector<FileTime> time_files(const FileJob& job, const std::vector<std::string>& types) {
  fs::create_directories(job.folder);
  std::vector<FileTime> times;
  times.reserve(types.size());
  for (const std::string& type : types) times.push_back(time_type(job, type));
  fs::remove_all(job.folder);
  return times;
}

}  // namespace ggufmill::bench
