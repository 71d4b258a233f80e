// Files that are large: time and memory follow the header alone.

#include <chrono>
#include <filesystem>

#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

TEST_CASE("metadata larger than the buffer is read") {
  GgufBuilder builder;
  const std::string large(1 << 20, 'x');
  builder.metadata = {{"a", metadata_string(large)}, {"b", metadata_string("after")}, {"c", metadata_string(large)}};
  const TempDir folder;
  builder.write(folder.file("m.gguf"));
  const auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  CHECK(*model.value().metadata.find("b") == metadata_string("after"));
  CHECK(*model.value().metadata.find("c") == metadata_string(large));
}

TEST_CASE("100000 tensors and as many keys take a moment") {
  GgufBuilder builder;
  for (int i = 0; i < 100000; ++i) {
    builder.add_tensor("blk." + std::to_string(i) + ".attn_norm.weight", {1}, "I8");
    builder.metadata.push_back({"key." + std::to_string(i), metadata_bool(true)});
  }
  const TempDir folder;
  builder.write(folder.file("m.gguf"));
  const auto start = std::chrono::steady_clock::now();
  const auto model = read_gguf(folder.file("m.gguf"));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  REQUIRE(model);
  CHECK(model.value().tensors.size() == 100000);
  CHECK(seconds.count() < 5);  // a check of each against each would take minutes
}

TEST_CASE("a file of 4 TB is opened as quickly as a small one") {
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  write_text(path, GgufBytes().head(1, 0).tensor("t", {1u << 20, 1u << 20}, 0, 0).pad().bytes());
  std::error_code error;
  std::filesystem::resize_file(path, (std::uint64_t{1} << 42) + 96, error);
  if (error) GGUFMILL_SKIP("no sparse files of 4 TB here");
  const auto start = std::chrono::steady_clock::now();
  CHECK(read_gguf(path));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 1);
}
