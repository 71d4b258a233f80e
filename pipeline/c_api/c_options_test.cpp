// Options of the C interface.
#include "pipeline/c_api/c_options.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::c;

namespace {

// Reads options of each kind; returns the first error, or none.
std::optional<Error> problem_of(const char* text) {
  bool flag = false;
  std::string name;
  Strings list;
  unsigned number = 0;
  std::size_t word = 0;
  Options options(text);
  options.read("flag", flag);
  options.read("name", name);
  options.read("list", list);
  options.read("number", number, 10);
  options.read("word", word, Strings{"one", "two"});
  const Status done = options.finish();
  if (done) return {};
  return done.error();
}

}  // namespace

TEST_CASE("options keep their defaults without a text") {
  bool flag = true;
  Options options(nullptr);
  options.read("flag", flag);
  CHECK(options.finish());
  CHECK(flag);
}

TEST_CASE("options are read into variables of their kinds") {
  bool flag = false;
  std::string name;
  Strings list;
  unsigned number = 0;
  std::size_t word = 0;
  Options options(R"({"flag": true, "name": "a", "list": ["b", "c"], "number": 10, "word": "two"})");
  options.read("flag", flag);
  options.read("name", name);
  options.read("list", list);
  options.read("number", number, 10);
  options.read("word", word, Strings{"one", "two"});
  REQUIRE(options.finish());
  CHECK(flag);
  CHECK(name == "a");
  CHECK(list == Strings{"b", "c"});
  CHECK(number == 10);
  CHECK(word == 1);
}

TEST_CASE("null is the same as no option") { CHECK_FALSE(problem_of(R"({"flag": null, "list": null})")); }

TEST_CASE("options of the wrong kind are refused") {
  const char* text = GENERATE(R"({"flag": 1})", R"({"name": ["a"]})", R"({"list": ["a", 1]})", R"({"list": "a"})",
                              R"({"number": "1"})", R"({"number": -1})", R"({"number": 11})", R"({"number": 1.5})",
                              R"({"word": "three"})", R"({"word": 1})");
  CAPTURE(text);
  const auto problem = problem_of(text);
  REQUIRE(problem);
  CHECK(problem->code == ExitCode::kUsage);
}

TEST_CASE("texts that are no JSON objects are refused") {
  const char* text = GENERATE("", "[", "[]", "1", "{\"flag\": true} x", "{flag: true}");
  CAPTURE(text);
  const auto problem = problem_of(text);
  REQUIRE(problem);
  CHECK(problem->code == ExitCode::kUsage);
}

TEST_CASE("an unknown option is refused with a suggestion") {
  const auto problem = problem_of(R"({"flagg": true})");
  REQUIRE(problem);
  CHECK(problem->what == "unknown option 'flagg'");
  CHECK(problem->help == "did you mean 'flag'?");
}

TEST_CASE("all errors of options are reported") {
  const auto problem = problem_of(R"({"flag": 1, "name": 2})");
  REQUIRE(problem);
  CHECK(problem->also.size() == 1);
}
