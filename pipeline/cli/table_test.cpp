#include "pipeline/cli/table.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("columns are as wide as their widest cell") {
  CHECK(render_table({{"name"}, {"n", Align::kRight}}, {{"a", "1"}, {"bcdef", "234"}}) ==
        "name     n\n"
        "a        1\n"
        "bcdef  234\n");
}

TEST_CASE("cells are printable, and as wide as a terminal shows them") {
  CHECK(render_table({{"name"}, {"n"}}, {{"a\x1b[1m\n", "1"}, {"\xe6\xa8\xa1\xc3\xa9", "2"}}) ==
        "name          n\n"
        "a\\x1b[1m\\x0a  1\n"
        "\xe6\xa8\xa1\xc3\xa9           2\n");
}

TEST_CASE("long names are cut in the middle") {
  CHECK(fit_name("model.gguf", 10) == "model.gguf");
  CHECK(fit_name("models/tiny.gguf", 11) == "mode...gguf");
  CHECK(fit_name("\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1\xe5\x9e\x8b", 7) == "\xe6\xa8\xa1...\xe5\x9e\x8b");
  CHECK(fit_name("abcdef", 2) == "..");
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
