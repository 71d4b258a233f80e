#include "pipeline/core/fields.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("sizes have decimal and binary units") {
  CHECK(parse_bytes("512MiB").value() == 512ull << 20);
  CHECK(parse_bytes("20G").value() == 20000000000ull);
  CHECK(parse_bytes("1.5GiB").value() == 3ull << 29);
  CHECK(parse_bytes("18446744073709551615").value() == ~0ull);
}

TEST_CASE("what is no size is refused") {
  for (const char* text : {"", "abc", "-1", "12 MiB", "1X", "99999999999T", "1e400", "nan"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text));
  }
}
