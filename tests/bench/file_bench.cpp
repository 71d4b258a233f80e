#include "tests/bench/file_bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "tests/support/files.h"
#include "tests/support/sha256.h"

namespace ggufmill::bench {
namespace {

using Command = std::vector<std::string>;

[[noreturn]] void fail(const Command& command) {
  std::string line;
  for (const std::string& word : command) line.append(" ").append(word);
  throw std::runtime_error("this failed:" + line);
}

// Runs a program without its output and waits for it.
void run(Command command) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) != child || status != 0) fail(command);
}

// A pipeline file of one output; llama-quantize's own order of tensors is the default.
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
  std::vector<double> our_seconds, their_seconds;
  for (unsigned round = 0; round < job.rounds; ++round) {
    our_seconds.push_back(seconds_of([&] { run(our_command); }));
    if (!job.llama_quantize.empty()) their_seconds.push_back(seconds_of([&] { run(their_command); }));
  }
  FileTime time{type, median(our_seconds), 0, false};
  if (job.llama_quantize.empty()) return time;
  time.llama_seconds = median(their_seconds);
  time.same_bytes = sha256_file(ours) == sha256_file(theirs);
  return time;
}

}  // namespace

std::vector<FileTime> time_files(const FileJob& job, const std::vector<std::string>& types) {
  std::filesystem::create_directories(job.folder);
  std::vector<FileTime> times;
  for (const std::string& type : types) times.push_back(time_type(job, type));
  std::filesystem::remove_all(job.folder);
  return times;
}

}  // namespace ggufmill::bench
