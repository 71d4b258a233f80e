// Kills programs while they write: an output must be absent, old, or complete (DESIGN 1, promise 2), and the next run
// must resume.

#include <windows.h>
// after the main header
#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/version.h"

using namespace ggufmill;

namespace {

// Starts a program and kills it as soon as `is_time` returns true; returns false if it had ended before.
bool kill_when(const std::vector<std::string>& words, const std::function<bool()>& is_time) {
  int error = 0;
  const char* action = "";
  const auto program = ChildProgram::start(words, own_variables(), error, action);
  REQUIRE(program);
  while (program->read(10, [](auto, auto) {}) && !is_time()) {
  }
  const bool is_running = !program->ended();
  program->kill();
  program->wait();
  return is_running;
}

bool kill_after(const std::vector<std::string>& words, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  return kill_when(words, [end] { return std::chrono::steady_clock::now() >= end; });
}

// Returns true if a journal in the folder is longer than `bytes`.
bool has_journal_of_more_than(const TempDir& folder, std::uint64_t bytes) {
  for (const std::string& name : names_in(folder.path())) {
    std::error_code gone;
    const std::uint64_t size = name.ends_with(".journal") ? fs::file_size(folder.file(name), gone) : 0;
    if (!gone && size > bytes) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("killed before any system call, an output is absent, old or whole, and the next run makes it") {
  const bool exists = GENERATE(false, true);
  const std::string old = exists ? version('o') : "";
  int k = 1;
  for (bool killed = true; killed; ++k) {
    const TempDir folder;
    const std::string path = folder.file("out");
    if (exists) write_text(path, old);
    const ProcessResult result = run_process({GGUFMILL_WRITE_KILLED, path, "n", std::to_string(k)});
    killed = result.exit_code == 137;
    CAPTURE(k, exists, result.exit_code);
    CHECK((killed || result.exit_code == 0));
    const std::string text = text_or_nothing(path);
    CHECK((text == version('n') || (killed && text == old)));
    CHECK(has_only_temporaries(folder));
    CHECK(write_version(path, 'x', IoKind::kAuto));
    CHECK((read_text(path) == version('x')));
  }
  CHECK(k > 15);
}

TEST_CASE("killed at any time, an output that is replaced over and over is always one whole version") {
  const TempDir folder;
  const std::string path = folder.file("out");
  write_text(path, version('a'));
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    CHECK(kill_after({GGUFMILL_WRITE_KILLED, path, "b", "0"}, std::chrono::milliseconds(300 + 37 * round)));
    const std::string text = read_text(path);
    REQUIRE_FALSE(text.empty());
    CHECK((text == version(text[0])));
    CHECK(has_only_temporaries(folder));
  }
}

TEST_CASE("a killed run leaves no output, and the next one resumes with the same bytes") {
  const TempDir folder;
  const std::string model = folder.file("model.gguf"), whole = folder.file("whole.gguf"), out = folder.file("out.gguf");
  synth::write_model(synth::llama_spec(60'000'000), model);
  const std::vector<std::string> words = {GGUFMILL_PROGRAM, "quantize", model, "", "Q4_K_M"};
  auto of = [&](const std::string& path) {
    auto all = words;
    all[3] = path;
    return all;
  };
  REQUIRE(run_process(of(whole)).exit_code == 0);
  constexpr std::uint64_t kHeader = 300, kRecord = 24;  // bytes of a journal: at most, and about
  int resumed = 0;
  for (unsigned units = 0; units < 9; units += 2) {
    CAPTURE(units);
    fs::remove(out);
    const bool is_killed =
        kill_when(of(out), [&] { return has_journal_of_more_than(folder, kHeader + units * kRecord); });
    if (!is_killed) continue;  // it was faster
    CHECK_FALSE(fs::exists(out));
    const ProcessResult result = run_process(of(out));
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    CHECK((read_text(out) == read_text(whole)));
    resumed += result.err.find("units of work were done by an earlier run") != std::string::npos;
    CHECK(names_in(folder.path()) == std::vector<std::string>{"model.gguf", "out.gguf", "whole.gguf"});
  }
  CHECK(resumed > 0);
}

TEST_CASE("CTRL+BREAK interrupts a run like SIGTERM, and the next one resumes") {
  const TempDir folder;
  const std::string model = folder.file("model.gguf"), out = folder.file("out.gguf");
  synth::write_model(synth::llama_spec(60'000'000), model);
  const std::vector<std::string> words = {GGUFMILL_PROGRAM, "quantize", model, out, "Q4_K_M"};
  int error = 0;
  const char* action = "";
  const auto program = ChildProgram::start(words, own_variables(), error, action);
  REQUIRE(program);
  std::string text;
  const auto printed = [&](auto, std::string_view more) { text += more; };
  const auto begin = std::chrono::steady_clock::now();
  while (program->read(10, printed) && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500)) {
  }
  program->ask_to_end();
  while (program->read(-1, printed)) {
  }
  const int exit_code = program->wait();
  INFO(text);
  if (exit_code != 0) {  // else it was faster
    CHECK(exit_code == 143);
    CHECK_FALSE(fs::exists(out));
  }
  CHECK(run_process(words).exit_code == (exit_code == 0 ? 2 : 0));
  CHECK(fs::exists(out));
}
