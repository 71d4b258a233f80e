#include "pipeline/core/error.h"

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("several errors pass through one result in their order") {
  Diagnostics first, second;
  first.add(error_at({"a.yaml:1:2", ""}, "one"));
  first.add(usage_error("two"));
  second.add(first.together());
  REQUIRE(second.errors().size() == 2);
  CHECK(second.errors()[0].what == "one");
  CHECK(second.errors()[1].what == "two");
}

TEST_CASE("an error that is found again at the same place is reported once") {
  Diagnostics errors;
  errors.add(error_at({"a.yaml:1:2", ""}, "one"));
  errors.add(error_at({"a.yaml:3:2", ""}, "one"));
  errors.add(error_at({"a.yaml:1:2", ""}, "one"));
  CHECK(errors.errors().size() == 2);
  errors.add(error_at({"./b/../a.yaml:1:2", ""}, "one"));
  errors.add(error_at({(fs::current_path() / "a.yaml:3:2").string(), ""}, "one"));
  CHECK(errors.errors().size() == 2);
}

TEST_CASE("two addresses are two places") {
  Diagnostics errors;
  errors.add(error_at({"s3://b/k", ""}, "one"));
  errors.add(error_at({"s3://b//k", ""}, "one"));
  CHECK(errors.errors().size() == 2);
}

TEST_CASE("a file that cannot be read is reported at the first place that names it") {
  const auto missing = [](const char* place, const std::string& path) {
    Error error = error_at({place, ""}, path + ": cannot open the file");
    error.unread = path;
    return error;
  };
  Diagnostics errors;
  errors.add(missing("a.yaml:1:2", "r.yaml"));
  errors.add(missing("a.yaml:2:2", "r.yaml"));
  errors.add(missing("a.yaml:3:2", "./r.yaml"));
  errors.add(missing("a.yaml:4:2", "s.yaml"));
  REQUIRE(errors.errors().size() == 2);
  CHECK(errors.errors()[0].where == "a.yaml:1:2");
  CHECK(errors.errors()[1].where == "a.yaml:4:2");
}
