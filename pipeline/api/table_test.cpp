#include "pipeline/api/table.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("columns are as wide as their widest cell") {
  CHECK(render_table({{"name"}, {"n", Align::kRight}}, {{"a", "1"}, {"bcdef", "234"}}) ==
        "name     n\n"
        "a        1\n"
        "bcdef  234\n");
}

TEST_CASE("cells are printable and have their display width") {
  CHECK(render_table({{"name"}, {"n"}}, {{"a\x1b[1m\n", "1"}, {"\xe6\xa8\xa1\xc3\xa9", "2"}}) ==
        "name          n\n"
        "a\\x1b[1m\\x0a  1\n"
        "\xe6\xa8\xa1\xc3\xa9           2\n");
}

TEST_CASE("on a narrow terminal, the widest text cells wrap") {
  const std::vector<Column> columns = {{"name"}, {"bytes", Align::kRight}, {"what for"}};
  const std::vector<Row> rows = {{"a", "12", "for models that are no language models"}, {"bcd", "3", "x"}};
  CHECK(render_table(columns, rows, 31) ==
        "name  bytes  what for\n"
        "a        12  for models that\n"
        "             are no language\n"
        "             models\n"
        "bcd       3  x\n");
  CHECK(render_table(columns, rows, 51) == render_table(columns, rows, 1000));
}

TEST_CASE("text without spaces wraps after a comma or slash, or anywhere") {
  CHECK(render_table({{"path"}}, {{"/usr/lib/ggufmill/reference.so"}}, 20) ==
        "path\n/usr/lib/ggufmill/\nreference.so\n");
  CHECK(render_table({{"path"}}, {{"abcdefghijklmnopqrs"}}, 12) == "path\nabcdefghijkl\nmnopqrs\n");
}

TEST_CASE("no column becomes unreadably narrow, and numbers are never cut") {
  CHECK(render_table({{"n", Align::kRight}, {"word"}}, {{"1234567890", "abcdefghijklm"}}, 5) ==
        "         n  word\n1234567890  abcdefghijkl\n            m\n");
}

TEST_CASE("names are shortened before other cells of a row wrap") {
  const std::vector<Column> columns = {name_column("tensor"), whole_column("shape"), {"bytes", Align::kRight}};
  const std::vector<Row> rows = {{"blk.10.ffn_down_exps.weight", "2048 x 7168 x 256", "2,113,929,216"}};
  CHECK(render_table(columns, rows, 54) ==
        "tensor                shape                      bytes\n"
        "blk.10.f...ps.weight  2048 x 7168 x 256  2,113,929,216\n");
  CHECK(render_table(columns, rows, 20) ==
        "tensor        shape                      bytes\n"
        "blk....eight  2048 x 7168 x 256  2,113,929,216\n");
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

TEST_CASE("byte counts are rounded for display") {
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_bytes(~0ull) == "16384.00 PiB");
}
