// Tests completion in shells that are not installed on every machine. A cli_golden case covers bash.

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

const std::string kProgram = GGUFMILL_BUILD_DIR "/bin/ggufmill";

bool has_program(const std::string& name) {
  return run_process({"/usr/bin/env", "sh", "-c", "command -v " + name}).exit_code == 0;
}

// Returns the completions that fish offers for a line with this beginning: a word, a tab and its description.
std::string offered(const TempDir& folder, const std::string& line) {
  return run_process({"/usr/bin/env", "fish", "--no-config", "-c", "source ggufmill.fish; complete -C '" + line + "'"},
                     folder.path(), {"HOME=" + folder.path().string()})
      .out;
}

}  // namespace

TEST_CASE("fish completes verbs, options and the words that a verb takes") {
  if (!has_program("fish")) GGUFMILL_SKIP("there is no fish");
  const TempDir folder;
  write_text(folder.file("ggufmill.fish"), run_process({kProgram, "completion", "fish"}).out);
  CHECK(offered(folder, "ggufmill quan").starts_with("quantize\t"));
  CHECK(offered(folder, "ggufmill run --no-").starts_with("--no-resume\t"));
  CHECK(offered(folder, "ggufmill completion ").find("zsh\n") != std::string::npos);
}

TEST_CASE("zsh can read its completion") {
  if (!has_program("zsh")) GGUFMILL_SKIP("there is no zsh");
  const TempDir folder;
  write_text(folder.file("_ggufmill"), run_process({kProgram, "completion", "zsh"}).out);
  const ProcessResult read = run_process({"/usr/bin/env", "zsh", "-n", "_ggufmill"}, folder.path());
  CHECK(read.exit_code == 0);
  CHECK(read.err.empty());
}
