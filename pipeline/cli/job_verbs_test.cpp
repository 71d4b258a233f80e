// The verbs that measure, and those of cluster jobs.

#include <cstdlib>

#include "pipeline/cli/test_program.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

constexpr int kUsage = static_cast<int>(ExitCode::kUsage), kTransient = static_cast<int>(ExitCode::kTransient);

// A job of two parts, none of which has run.
class SubmittedJob : public VerbFolder {
 public:
  SubmittedJob() { REQUIRE(run_verb({"submit", path("job.yaml")}).exit_code == 0); }

  std::string job() const { return path("job.job"); }
  int run_part(const std::string& part) const {
    return run_verb({"part", "--plan", job(), "--part", part, "--quiet"}).exit_code;
  }
};

}  // namespace

TEST_CASE("measure refuses a job without a target") {
  const VerbFolder folder;
  CHECK(run_verb({"measure", folder.path("job.yaml")}).exit_code == kUsage);
}

TEST_CASE("probe requires the program that measures perplexity") {
  const VerbFolder folder;
  CHECK(has(run_verb({"probe", folder.path("job.yaml")}).err, "--perplexity is missing"));
}

TEST_CASE("recipe show prints the rules of a recipe") {
  CHECK(has(run_verb({"recipe", "show", "Q4_0"}).out, "extends: mix\n"));
}

TEST_CASE("submit creates the folder of a job") {
  const SubmittedJob folder;
  CHECK(folder.has("job.job/plan.json"));
}

TEST_CASE("submit creates nothing with --dry-run") {
  const VerbFolder folder;
  CHECK(run_verb({"submit", folder.path("job.yaml"), "--dry-run"}).exit_code == 0);
  CHECK_FALSE(folder.has("job.job"));
}

TEST_CASE("--architectures is refused for a job that reads no checkpoint, and if there is no such map") {
  const VerbFolder folder;
  const std::string map = folder.path("mine.yaml");
  write_text(map, "description: mine\nextends: llama\nserves: [MineForCausalLM]\n");
  for (const char* const verb : {"check", "plan", "run"}) {
    const Printed unused = run_verb({verb, folder.path("job.yaml"), "--architectures", map});
    CHECK(unused.exit_code == kUsage);
    CHECK(has(unused.err, "--architectures has no effect: the job reads no checkpoint"));
    const Printed missing = run_verb({verb, folder.path("job.yaml"), "--architectures", folder.path("no.yaml")});
    CHECK(missing.exit_code == kUsage);
    CHECK(has(missing.err, "no.yaml' does not exist"));
  }
}

TEST_CASE("a part that is done is not run again") {
  const SubmittedJob folder;
  CHECK(folder.run_part("0") == 0);
  CHECK(folder.run_part("0") == 0);
}

TEST_CASE("a variable that does not contain the number of a part is not shown, since it may be a token") {
  const SubmittedJob folder;
  REQUIRE(::setenv("GGUFMILL_TEST_VARIABLE", "hf_SECRET", 1) == 0);
  const Printed printed = run_verb({"part", "--plan", folder.job(), "--part-env", "GGUFMILL_TEST_VARIABLE"});
  CHECK(printed.exit_code == kUsage);
  CHECK(has(printed.err, "GGUFMILL_TEST_VARIABLE does not contain the number of a part"));
  CHECK_FALSE(has(printed.err, "SECRET"));
}

TEST_CASE("seal waits for no part that is not done unless it is asked to") {
  const SubmittedJob folder;
  REQUIRE(folder.run_part("1") == 0);
  const Printed printed = run_verb({"seal", "--plan", folder.job()});
  CHECK(printed.exit_code == kTransient);
  CHECK(has(printed.err, "1 of 2 parts are not done: 0"));
}

TEST_CASE("parts and seal write the output that run writes") {
  const SubmittedJob folder;
  REQUIRE(folder.run_part("0") == 0);
  REQUIRE(folder.run_part("1") == 0);
  REQUIRE(run_verb({"seal", "--plan", folder.job(), "--quiet"}).exit_code == 0);
  const VerbFolder other;
  REQUIRE(run_verb({"run", other.path("job.yaml"), "--quiet"}).exit_code == 0);
  CHECK(read_text(folder.path("out.gguf")) == read_text(other.path("out.gguf")));
}

TEST_CASE("resume lists the parts that are not done") {
  const SubmittedJob folder;
  REQUIRE(folder.run_part("0") == 0);
  CHECK(has(run_verb({"resume", folder.job()}).out, "for K in 1\n"));
}

TEST_CASE("render refuses a job folder that is on no volume") {
  const SubmittedJob folder;
  CHECK(run_verb({"render", folder.job(), "--engine", "kubernetes", "--claim", "data"}).exit_code == kUsage);
}

TEST_CASE("cancel keeps the job unless it is to be discarded") {
  const SubmittedJob folder;
  CHECK(run_verb({"cancel", folder.job()}).exit_code == 0);
  CHECK(folder.has("job.job"));
  CHECK(run_verb({"cancel", folder.job(), "--discard"}).exit_code == 0);
  CHECK_FALSE(folder.has("job.job"));
}
