// Other programs, and modules that crash those that load them.

#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/program.h"
#include "pipeline/kernels/module_file.h"
#include "pipeline/kernels/module_set.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

Ended run(const std::vector<std::string>& words, const Variables& added = {}) {
  int error = 0;
  const char* action = "";
  Variables environment = own_variables();
  environment.insert(environment.end(), added.begin(), added.end());
  const auto program = ChildProgram::start(words, environment, error, action);
  REQUIRE(program);
  Ended ended;
  while (program->read(-1, [&](ChildProgram::Stream stream, std::string_view text) {
    (stream == ChildProgram::Stream::kOut ? ended.out : ended.err) += text;
  })) {
  }
  ended.exit_code = program->wait();
  return ended;
}

}  // namespace

TEST_CASE("a program's exit code and output are kept apart") {
  const Ended ended = run({"cmd", "/c", "echo one& echo two>&2& exit 7"});
  CHECK(ended.exit_code == 7);
  CHECK(ended.out == "one\r\n");
  CHECK(ended.err.starts_with("two"));
}

TEST_CASE("arguments with spaces, quotes, backslashes and letters reach a program as they are") {
  const Ended ended = run({GGUFMILL_PROGRAM, "a \"b\\\" c\\\\ \u6a21"});
  CHECK(ended.exit_code == 2);
  CHECK(ended.err.find("\u6a21") != std::string::npos);
  CHECK(ended.err.find("a \"b\\\" c\\\\ ") != std::string::npos);
}

TEST_CASE("variables are added to the environment, and replace others") {
  CHECK(run({"cmd", "/c", "echo %GGUFMILL_X%"}, {{"ggufmill_x", "gr\u00fcn"}, {"GGUFMILL_Y", "2"}}).exit_code == 0);
  CHECK(run({"cmd", "/c", "echo %GGUFMILL_X%"}, {{"GGUFMILL_X", "1"}}).out == "1\r\n");
}

TEST_CASE("more output than a pipe holds does not block") {
  const TempDir folder;
  write_text(folder.file("long.txt"), std::string(300000, 'x'));
  std::string path = folder.file("long.txt");
  std::replace(path.begin(), path.end(), '/', '\\');
  CHECK(run({"cmd", "/c", "type " + path}).out.size() == 300000);
}

TEST_CASE("programs are found by PATH") {
  CHECK(find_program("cmd"));
  CHECK(find_program("cmd.exe"));
  CHECK(find_program(GGUFMILL_PROGRAM));
  CHECK(!find_program("no-such-program-of-any-kind"));
  CHECK(!find_program(fs::temp_directory_path().string()));
  const TempDir folder;
  write_text(folder.file("batch.bat"), "echo");
  CHECK(!find_program(folder.file("batch.bat")));
}

TEST_CASE("processes") {
  CHECK(is_process(process_id()));
  CHECK_FALSE(is_process(0xfffffff0));
}

TEST_CASE("a module is read as a file before it is loaded") {
  ModuleFile file;
  CHECK(read_module_file(GGUFMILL_MODULES "/reference.dll", file).empty());
  CHECK(file.words.name == "reference");
  CHECK(file.words.isa == "reference");
  CHECK(read_module_file(GGUFMILL_PROGRAM, file) == "is not a DLL for this machine");
}

TEST_CASE("no damage to a module crashes the program that reads it") {
  const std::string whole = read_text(GGUFMILL_MODULES "/reference.dll");
  const TempDir folder;
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{200}, whole.size() / 2}) {
    write_text(folder.file("cut.dll"), whole.substr(0, bytes));
    ModuleFile file;
    CHECK_FALSE(read_module_file(folder.file("cut.dll"), file).empty());
  }
  for (std::size_t at = 0; at < 1024; at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    write_text(folder.file("damaged.dll"), damaged);
    ModuleFile file;
    CHECK_NOTHROW(read_module_file(folder.file("damaged.dll"), file));
  }
}

TEST_CASE("a module is tried in another process") {
  CHECK(run({GGUFMILL_MODULES "/ggufmill-module-trial.exe", GGUFMILL_MODULES "/reference.dll"}).exit_code == 0);
  const Ended none = run({GGUFMILL_MODULES "/ggufmill-module-trial.exe", GGUFMILL_MODULES "/missing.dll"});
  CHECK(none.exit_code == 0);
  CHECK(none.out.starts_with("cannot be loaded: "));
  const std::vector<std::string> helper{"cmd", "/c", "exit 3"};
  CHECK(ask_child([] { return std::string(); }, {}, helper).fault == "ends with the exception 0x00000003");
}
