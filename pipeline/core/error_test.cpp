#include "pipeline/core/error.h"

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
}
