#include "stages/importance/importance_summary.h"

#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

TEST_CASE("what is not known is not recorded, and texts are cut to 127 bytes") {
  const ImportanceSummary summary{std::string(200, 'p'), {}, 3, 0};
  const std::vector<MetadataEntry> entries = metadata_of(summary);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].value == metadata_string(std::string(127, 'p')));
  CHECK(entries[1].value == metadata_unsigned(MetadataType::kUint32, 3));
  CHECK(metadata_of({"p", "d", 0, 5}).empty());
}

TEST_CASE("a summary counts the entries that are left") {
  const TempDir folder;
  const std::string path = folder.file("imatrix.gguf");
  GgufBuilder file = gguf_importance();
  add_entry(file, "a", {1, 2}, {1});
  add_entry(file, "b", {3, 4}, {1});
  file.write(path);
  const Selection only_b{{Pattern::compile("^b").value()}, {}};
  const ImportanceSummary summary = summarize_importance(path, only_b, gguf_opener()).value();
  CHECK(summary.file == path);
  CHECK(summary.dataset == "a.txt");
  CHECK(summary.entries == 1);
  CHECK(summary.chunks == 7);
}
