#include "pipeline/core/record.h"

#include <boost/json.hpp>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

namespace json = boost::json;

struct Inner {
  std::string name{};
  unsigned count = 0;
};
struct Outer {
  bool flag = false;
  std::optional<std::uint64_t> bytes{};
  std::vector<double> costs{};
  Inner inner{};
  std::vector<Inner> more{};
};

const RecordForm<Outer>& outer_form() {
  static const RecordForm<Inner> inner{member("name", &Inner::name), member("count", &Inner::count)};
  static const RecordForm<Outer> form{member("flag", &Outer::flag), member("bytes", &Outer::bytes),
                                      member("costs", &Outer::costs), member("inner", &Outer::inner, inner.kind()),
                                      member("more", &Outer::more, inner.list())};
  return form;
}

std::string problem_with(const char* text) try {
  outer_form().read(json::parse(text));
  return "";
} catch (const InvalidJson& error) {
  return error.what;
}

constexpr const char* kWritten =
    R"({"flag":true,"bytes":null,"costs":[5E-1,2E0],"inner":{"name":"a","count":3},"more":[{"name":"b","count":0}]})";

}  // namespace

TEST_CASE("a form writes members in its order and reads them again") {
  const Outer written{true, {}, {0.5, 2}, {"a", 3}, {{"b", 0}}};
  const std::string text = json::serialize(outer_form().write(written));
  CHECK(text == kWritten);
  CHECK(json::serialize(outer_form().write(outer_form().read(json::parse(text)))) == kWritten);
}

TEST_CASE("a form names the member that is missing or wrong") {
  CHECK(problem_with("{}") == "'bytes' is missing");
  CHECK(problem_with(R"({"bytes": "x", "costs": []})") == "'bytes' is not a non-negative integer");
  CHECK(problem_with(R"({"bytes": 1, "costs": [-1]})") == "'costs' is not a number from 0");
  CHECK(problem_with(R"({"bytes": 1, "costs": [], "inner": {"name": "", "count": 5000000000}})") ==
        "'count' is too large");
}

TEST_CASE("a check of a kind refuses a value") {
  const auto positive = checked_kind(UsualKind<unsigned>::make(), [](unsigned number, std::string_view name) {
    if (number == 0) throw InvalidJson{fmt::format("'{}' is 0", name)};
  });
  const RecordForm<Inner> form{member("count", &Inner::count, positive)};
  CHECK(form.read(json::parse(R"({"count": 1})")).count == 1);
  CHECK_THROWS_AS(form.read(json::parse(R"({"count": 0})")), InvalidJson);
}
