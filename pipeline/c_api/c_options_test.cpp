// Options of the C interface.
#include "pipeline/c_api/c_support.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::c;

namespace {

struct Options {
  bool flag = false;
  std::string name;
  Strings list;
  unsigned number = 0;
  std::size_t word = 0;
};

std::vector<OperationOption> rows() {
  static constexpr std::string_view kWords[] = {"one", "two"};
  return {Option<Options>(option("flag", &Options::flag, "")), Option<Options>(option("name", &Options::name, "")),
          Option<Options>(option("list", &Options::list, list_of(text()), "")),
          Option<Options>(option("number", &Options::number, integer<unsigned>().at_most(10), "")),
          Option<Options>(option("word", &Options::word, enumeration<std::size_t>(kWords), ""))};
}

// Reads options of each kind; returns the first error, or none.
std::optional<Error> problem_of(const char* text) {
  Options options;
  const Status done = read_options(text, {{rows(), &options}});
  if (done) return {};
  return done.error();
}

}  // namespace

TEST_CASE("options keep their defaults without a text") {
  Options options;
  options.flag = true;
  CHECK(read_options(nullptr, {{rows(), &options}}));
  CHECK(options.flag);
}

TEST_CASE("options are read into variables of their kinds") {
  Options options;
  REQUIRE(read_options(R"({"flag": true, "name": "a", "list": ["b", "c"], "number": 10, "word": "two"})",
                       {{rows(), &options}}));
  CHECK(options.flag);
  CHECK(options.name == "a");
  CHECK(options.list == Strings{"b", "c"});
  CHECK(options.number == 10);
  CHECK(options.word == 1);
}

TEST_CASE("null is the same as no option") { CHECK_FALSE(problem_of(R"({"flag": null, "list": null})")); }

TEST_CASE("options of the wrong kind are refused") {
  const char* text = GENERATE(R"({"flag": 1})", R"({"name": ["a"]})", R"({"list": ["a", ["b"]]})",
                              R"({"list": {"a": 1}})", R"({"number": "1"})", R"({"number": -1})", R"({"number": 11})",
                              R"({"number": 1.5})", R"({"word": "three"})", R"({"word": 1})");
  CAPTURE(text);
  const auto problem = problem_of(text);
  REQUIRE(problem);
  CHECK(problem->code == ExitCode::kUsage);
}

TEST_CASE("texts that are not JSON objects are refused") {
  const char* text = GENERATE("[", "[]", "1", "{\"flag\": true} x", "{flag: true}");
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
  const auto problem = problem_of(R"({"flag": 1, "name": ["a"]})");
  REQUIRE(problem);
  CHECK(problem->also.size() == 1);
}
