// Tests models in several files: reading them, and rejecting files that do not belong together.

#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/format.h"
#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

MetadataEntry u16(std::string key, std::uint64_t value) {
  return {std::move(key), metadata_unsigned(MetadataType::kUint16, value)};
}

// Returns shard `index` of `count`, with one tensor.
GgufBuilder shard(std::uint64_t index, std::uint64_t count) {
  GgufBuilder builder;
  if (index == 0) builder.metadata.push_back({"general.name", metadata_string("sharded")});
  builder.metadata.push_back(u16("split.no", index));
  builder.metadata.push_back(u16("split.count", count));
  builder.metadata.push_back({"split.tensors.count", metadata_unsigned(MetadataType::kInt32, count)});
  builder.add_tensor(fmt::format("t{}", index), {4}, "F32", static_cast<unsigned char>(index));
  return builder;
}

struct Shards {
  TempDir folder;
  std::string path(std::uint64_t index, std::uint64_t count) const {
    return gguf::shard_path(folder.file("m"), index, count);
  }
  explicit Shards(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) shard(i, count).write(path(i, count));
  }
};

void check_refused(const std::string& path, const std::string& where, const std::string& says) {
  const auto model = read_gguf(path);
  REQUIRE_FALSE(model);
  CAPTURE(render(model.error()));
  CHECK(model.error().code == ExitCode::kBadInput);
  CHECK(model.error().where == where);
  CHECK(render(model.error()).find(says) != std::string::npos);
}

}  // namespace

TEST_CASE("shard names match the reference") {
  CHECK(gguf::shard_path("dir/m", 0, 5) == "dir/m-00001-of-00005.gguf");
  CHECK(gguf::shard_path("m", 99999, 100000) == "m-100000-of-100000.gguf");
  CHECK(gguf::shard_prefix("dir/m-00002-of-00005.gguf", 1, 5).value() == "dir/m");
  CHECK_FALSE(gguf::shard_prefix("dir/m-00002-of-00005.gguf", 0, 5));
  CHECK_FALSE(gguf::shard_prefix("-00001-of-00005.gguf", 0, 5));
}

TEST_CASE("the first of 200 files opens all of them") {
  const Shards shards(200);
  const auto model = read_gguf(shards.path(0, 200));
  REQUIRE(model);
  REQUIRE(model.value().files.size() == 200);
  REQUIRE(model.value().tensors.size() == 200);
  for (std::uint32_t i = 0; i < 200; ++i) {
    CHECK(model.value().files[i]->path == shards.path(i, 200));
    CHECK(model.value().tensors[i].name == fmt::format("t{}", i));
    CHECK(model.value().tensors[i].expression->extent.source == model.value().files[i]);
  }
  CHECK(as_string(*model.value().metadata.find("general.name")).value() == "sharded");
}

TEST_CASE("each file has its own alignment and byte order") {
  const Shards shards(2);
  GgufBuilder second = shard(1, 2);
  second.big_endian = true;
  second.set_alignment(256).write(shards.path(1, 2));
  const auto model = read_gguf(shards.path(0, 2));
  REQUIRE(model);
  CHECK_FALSE(model.value().tensors[0].expression->extent.big_endian);
  CHECK(model.value().tensors[1].expression->extent.big_endian);
  CHECK(model.value().tensors[1].expression->extent.offset == 256);
}

TEST_CASE("a merged file, with a count of 0 or 1, is one file") {
  const TempDir folder;
  GgufBuilder builder;
  builder.metadata = {u16("split.count", GENERATE(0u, 1u)), u16("split.tensors.count", 99)};
  builder.write(folder.file("merged.gguf"));
  CHECK(read_gguf(folder.file("merged.gguf")));
}

TEST_CASE("a later file is refused with a hint to the first one") {
  const Shards shards(3);
  check_refused(shards.path(1, 3), shards.path(1, 3), "give the first file: " + shards.path(0, 3));
}

TEST_CASE("a first file with an unrelated name is refused") {
  const Shards shards(2);
  fs::copy_file(shards.path(0, 2), shards.folder.file("mine.gguf"));
  check_refused(shards.folder.file("mine.gguf"), shards.folder.file("mine.gguf"), "NAME-00001-of-00002.gguf");
}

TEST_CASE("a missing file is reported by name") {
  const Shards shards(3);
  fs::remove(shards.path(2, 3));
  check_refused(shards.path(0, 3), shards.path(2, 3), "file 3 of 3");
}

TEST_CASE("files that do not belong together are refused") {
  const Shards shards(3);
  const std::string first = shards.path(0, 3), second = shards.path(1, 3);
  SECTION("the same file twice") {
    shard(0, 3).write(second);
    check_refused(first, second, "number 1 of 3, not 2 of 3");
  }
  SECTION("a file of a model with more files") {
    shard(1, 4).write(second);
    check_refused(first, second, "number 2 of 4, not 2 of 3");
  }
  SECTION("a file without split keys") {
    GgufBuilder().add_tensor("t1", {4}).write(second);
    check_refused(first, second, "not 2 of 3");
  }
  SECTION("a file with an extra tensor") {
    shard(1, 3).add_tensor("more", {1}).write(second);
    check_refused(first, first, "split.tensors.count is 3, but the 3 files have 4 tensors");
  }
  SECTION("a file with a tensor of the same name") {
    GgufBuilder same = shard(1, 3);
    same.tensors[0].name = "t0";
    same.write(second);
    check_refused(first, second, "tensor 't0' is also in an earlier file");
  }
  SECTION("one of the files is damaged") {
    write_text(second, "GGUF");
    check_refused(first, second, "4 more bytes are needed");
  }
}

TEST_CASE("split keys of the wrong type are refused") {
  const TempDir folder;
  const std::string path = folder.file("m-00001-of-00002.gguf");
  GgufBuilder builder;
  SECTION("a count as a string") { builder.metadata = {{"split.count", metadata_string("2")}}; }
  SECTION("a negative count") { builder.metadata = {{"split.count", metadata_unsigned(MetadataType::kInt32, ~0u)}}; }
  SECTION("a path as a number") {
    builder.metadata = {u16("split.count", 2), {"split.no", metadata_string("../../etc/passwd")}};
  }
  SECTION("a missing number") { builder.metadata = {u16("split.count", 2)}; }
  builder.write(path);
  check_refused(path, path, "split.");
}
