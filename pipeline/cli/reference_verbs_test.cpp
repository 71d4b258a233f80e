// The program without a verb, and the verbs that print reference material.

#include <boost/json.hpp>

#include "pipeline/cli/test_program.h"
#include "pipeline/cli/verb.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;
using namespace ggufmill::testing;

TEST_CASE("every verb has a help text, which names the verb") {
  for (const Verb& verb : verbs()) {
    const std::string name(verb.name);
    CAPTURE(name);
    CHECK(has(run_verb({name, "--help"}).out, "ggufmill " + name));
  }
}

TEST_CASE("an unknown verb is an error that suggests a similar one") {
  const Printed printed = run_verb({"inspct"});
  CHECK(printed.exit_code == static_cast<int>(ExitCode::kUsage));
  CHECK(has(printed.err, "did you mean 'inspect'?"));
}

TEST_CASE("the program prints its version") { CHECK(run_verb({"--version"}).out == "ggufmill " GGUFMILL_VERSION "\n"); }

TEST_CASE("convert lists the supported classes, as JSON too") {
  const auto listed = boost::json::parse(run_verb({"convert", "--print-supported-models", "--json"}).out);
  std::string lines;
  for (const boost::json::value& name : listed.at("classes").as_array()) lines += std::string(name.as_string()) + "\n";
  CHECK(has(lines, "LlamaForCausalLM\n"));
  CHECK(run_verb({"convert", "--print-supported-models"}).out == lines);
}

TEST_CASE("types lists types with their bits") {
  CHECK(has(run_verb({"types"}).out, "Q4_0      2           4.5000     32           18"));
}

TEST_CASE("kernels lists those that are built in") { CHECK(has(run_verb({"kernels"}).out, "(built in)")); }

TEST_CASE("architectures lists the maps") { CHECK(has(run_verb({"architectures"}).out, "granite")); }

TEST_CASE("architectures refuses options that would have no effect") {
  const auto refusal = [](std::vector<std::string> words) {
    words.insert(words.begin(), "architectures");
    const Printed printed = run_verb(words);
    CHECK(printed.exit_code == static_cast<int>(ExitCode::kUsage));
    return printed.err;
  };
  CHECK(
      has(refusal({"--functions", "--architectures", "mine.yaml"}), "--architectures has no effect with --functions"));
  CHECK(has(refusal({"new", "folder", "--like", "llama", "--functions"}),
            "`new` and --functions cannot be used together"));
  CHECK(has(refusal({"new", "folder", "--like", "llama", "--json"}), "--json has no effect with `new`"));
  CHECK(has(refusal({"new", "--like", "llama"}), "invalid arguments: 'new'"));
  CHECK(has(refusal({"show", "llama", "--like", "llama"}), "--like needs `new`"));
}

TEST_CASE("every schema is JSON") {
  for (const char* name : {"pipeline", "recipe", "architecture"}) {
    const std::string text = run_verb({"schema", name}).out;
    CAPTURE(name);
    CHECK(boost::json::parse(text).is_object());
  }
}

TEST_CASE("manual writes a page for the program and one for each verb") {
  const VerbFolder folder;
  REQUIRE(run_verb({"manual", "--folder", folder.path("man")}).exit_code == 0);
  CHECK(names_in(folder.path("man")).size() == verbs().size() + 1);
}

TEST_CASE("completion knows every verb") {
  const std::string text = run_verb({"completion", "bash"}).out;
  for (const Verb& verb : verbs()) CHECK(has(text, verb.name));
}
