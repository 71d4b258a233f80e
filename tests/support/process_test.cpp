#include "tests/support/process.h"

#include <system_error>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a program's exit code and output are kept apart") {
  const ProcessResult result = run_process({"/bin/sh", "-c", "echo one; echo two >&2; exit 7"});
  CHECK(result.exit_code == 7);
  CHECK(result.out == "one\n");
  CHECK(result.err == "two\n");
}

TEST_CASE("a program runs in the folder that is named") {
  CHECK(run_process({"/bin/sh", "-c", "pwd"}, "/").out == "/\n");
}

TEST_CASE("settings are added to the environment") {
  CHECK(run_process({"/bin/sh", "-c", "echo $GGUFMILL_X$HOME"}, {}, {"GGUFMILL_X=1", "HOME=/a"}).out == "1/a\n");
}

TEST_CASE("a signal shows in the exit code") { CHECK(run_process({"/bin/sh", "-c", "kill -9 $$"}).exit_code == 137); }

TEST_CASE("more output than a pipe holds does not block") {
  CHECK(run_process({"/bin/sh", "-c", "head -c 300000 /dev/zero"}).out.size() == 300000);
}

TEST_CASE("a program that is not there is an error") { CHECK_THROWS_AS(run_process({"/no/such"}), std::system_error); }
