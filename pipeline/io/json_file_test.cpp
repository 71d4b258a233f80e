// JSON files, read in pieces.

#include "pipeline/io/json_file.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace json = boost::json;

TEST_CASE("a document reads the same wherever it is split into pieces") {
  const TempDir folder;
  const std::string path = folder.file("f.json");
  const std::string text = R"(["\ud83d\ude00\n)"
                           "\xf0\x9f\x98\x80"
                           R"(", -12.5e+1, true, {"key":NaN}])";
  for (std::size_t before = 0; before < text.size(); ++before) {
    const std::string all = std::string((1 << 20) - before, ' ') + text;
    write_text(path, all);
    const auto read = read_checkpoint_json(path);
    if (!read) FAIL(render(read.error()));
    const json::array& items = read.value().get_array();
    REQUIRE(items.at(0) == "\xf0\x9f\x98\x80\n\xf0\x9f\x98\x80");
    REQUIRE(items.at(1) == -125.0);
    REQUIRE(items.at(2) == true);
    REQUIRE(std::isnan(items.at(3).at("key").get_double()));
  }
}

TEST_CASE("a file that Python would not accept is distinguished from one beyond the limits") {
  const TempDir folder;
  const std::string path = folder.file("f.json");
  const auto malformed = [&](std::string_view text) {
    write_text(path, text);
    bool is_malformed = false;
    CHECK_FALSE(read_checkpoint_json(path, kMaxJsonBytes, nullptr, &is_malformed));
    return is_malformed;
  };
  CHECK(malformed("{,}"));
  CHECK(malformed("{"));
  CHECK(malformed("\xef\xbb\xbf{}"));
  CHECK_FALSE(malformed("\"\xff\""));
  CHECK_FALSE(malformed(std::string(100, '[')));
}
