#include "pipeline/io/command.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Sets `stop` once `path` exists, which shows that the program runs.
std::thread stop_when_there(std::atomic<bool>& stop, const std::string& path) {
  return std::thread([&stop, path] {
    while (!fs::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop = true;
  });
}

}  // namespace

TEST_CASE("a program's output and exit code are returned") {
  const auto result = run_command({"sh", "-c", "echo a; echo b >&2; exit 3"}).value();
  CHECK(result.out == "a\n");
  CHECK(result.err == "b\n");
  CHECK(result.exit_code == 3);
}

TEST_CASE("a program is ended when it is stopped") {
  const TempDir folder;
  std::atomic<bool> stop = false;
  std::thread stopper = stop_when_there(stop, folder.file("runs"));
  const auto result = run_command({"sh", "-c", "touch '" + folder.file("runs") + "'; exec sleep 600"}, {.stop = &stop});
  stopper.join();
  REQUIRE(!result);
  CHECK(result.error().code == ExitCode::kInterrupted);
}

TEST_CASE("a program that exceeds its time limit is ended") {
  const auto begun = std::chrono::steady_clock::now();
  const auto result =
      run_command({"sleep", "600"}, {.time_limit = std::chrono::milliseconds(100), .help = "try again later"});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ExitCode::kTransient);
  CHECK(result.error().what == "did not end within 0.1 s");
  CHECK(result.error().help == "try again later");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(60));
  CHECK(run_command({"sh", "-c", "exit 3"}, {.time_limit = std::chrono::minutes(1)}).value().exit_code == 3);
}

TEST_CASE("a stopped program is not waited for if another that it started holds its output") {
  const TempDir folder;
  std::atomic<bool> stop = false;
  std::thread stopper = stop_when_there(stop, folder.file("runs"));
  const auto begin = std::chrono::steady_clock::now();
  const auto result =
      run_command({"sh", "-c", "sleep 30 & touch '" + folder.file("runs") + "'; wait"}, {.stop = &stop});
  stopper.join();
  REQUIRE(!result);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(25));
}

TEST_CASE("a program ends when the process that runs it is killed") {
  const TempDir folder;
  const pid_t runner = ::fork();
  if (runner == 0) {
    (void)run_command({"sh", "-c",
                       "echo $$ > '" + folder.file("new") + "'; mv '" + folder.file("new") + "' '" +
                           folder.file("runs") + "'; exec sleep 600"});
    ::_exit(1);
  }
  REQUIRE(runner > 0);
  while (!fs::exists(folder.file("runs"))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const pid_t program = std::stoi(read_text(folder.file("runs")));
  REQUIRE(::kill(program, 0) == 0);
  ::kill(runner, SIGKILL);
  ::waitpid(runner, nullptr, 0);
  // It may be a zombie for as long as its new parent likes.
  const auto runs = [&] {
    std::ifstream stat(fmt::format("/proc/{}/stat", program));
    std::string text;
    return std::getline(stat, text) && text.find(") Z ") == text.npos;
  };
  for (int i = 0; i < 2000 && runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(runs());
}

TEST_CASE("a program gets variables in addition to those of this process") {
  const auto result =
      run_command({"sh", "-c", "echo \"$GGUFMILL_TEST ${PATH:+path}\""}, {.environment = {{"GGUFMILL_TEST", "a b"}}});
  CHECK(result.value().out == "a b path\n");
}

TEST_CASE("a program that a signal ends has the exit code of a shell") {
  CHECK(run_command({"sh", "-c", "kill -9 $$"}).value().exit_code == 137);
}

TEST_CASE("a program that does not exist is an error") {
  CHECK(run_command({"no-such-program-of-ggufmill"}).error().code == ExitCode::kIo);
}

TEST_CASE("a program may print more than a pipe holds") {
  const std::string script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2";
  CHECK(run_command({"sh", "-c", script}).value().err.size() == 300000);
}

TEST_CASE("words are quoted for a shell where needed") {
  CHECK(shell_words({"a b", "c", "it's", ""}) == "'a b' c 'it'\\''s' ''");
}

TEST_CASE("what a program prints is passed on as it arrives") {
  const TempDir folder;
  const std::string seen = folder.file("seen");
  std::string printed;
  // The program prints more once the first line has arrived.
  const auto result =
      run_command({"sh", "-c", "echo a; while [ ! -e '" + seen + "' ]; do sleep 0.01; done; echo b >&2"},
                  {.printed = [&](std::string_view text) {
                    printed += text;
                    if (printed == "a\n") write_text(seen, "");
                  }});
  REQUIRE(result);
  CHECK(printed == "a\nb\n");
}

TEST_CASE("programs are found in PATH, or by their path") {
  CHECK(find_program("sh"));
  CHECK(find_program("/bin/sh") == "/bin/sh");
  CHECK(!find_program("no-such-program-of-any-kind"));
  CHECK(!find_program("/bin"));
}

TEST_CASE("a program gets no secret of this process, unless they are kept for it") {
  ::setenv("HF_TOKEN", "secret", 1);
  const std::vector<std::string> words{"sh", "-c", "echo \"${HF_TOKEN:-none}\""};
  const auto without = run_command(words), with = run_command(words, {.secrets = Secrets::kKeep});
  ::unsetenv("HF_TOKEN");
  CHECK(without.value().out == "none\n");
  CHECK(with.value().out == "secret\n");
}

TEST_CASE("of what a program prints without end, both ends are kept") {
  const std::string script = "echo first; head -c 20000000 /dev/zero; echo last";
  const std::string out = run_command({"sh", "-c", script}).value().out;
  CHECK(out.size() < 2 * kKeptOutput + 100);
  CHECK(out.starts_with("first\n"));
  CHECK(out.ends_with("last\n"));
  CHECK(out.find(fmt::format("[{} bytes are not shown]", 20000011 - 2 * kKeptOutput)) != out.npos);
}
