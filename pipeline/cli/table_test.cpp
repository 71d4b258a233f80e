#include "pipeline/cli/table.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("columns are as wide as their widest cell") {
  CHECK(render_table({{"name"}, {"n", Align::kRight}}, {{"a", "1"}, {"bcdef", "234"}}) ==
        "name     n\n"
        "a        1\n"
        "bcdef  234\n");
}

TEST_CASE("numbers have commas") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1234567) == "1,234,567");
}

TEST_CASE("bytes are rounded for people") {
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_bytes(~0ull) == "16384.00 PiB");
}
