// Tests how a model is split into files, and which options are refused.

#include <fmt/format.h>

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/sink_testing.h"

using namespace ggufmill;

namespace {

std::string refusal(const Model& model, const gguf::SinkOptions& options) {
  const auto files = lay_out(model, options);
  REQUIRE_FALSE(files);
  CHECK(files.error().code == ExitCode::kUsage);
  return files.error().what;
}

}  // namespace

TEST_CASE("shards are split by number of tensors") {
  const TempDir folder;
  const Model model = model_of(sample_model(), folder);
  const std::vector<OutputFile> files = shards_of(model, {.shard_tensors = 2});
  REQUIRE(files.size() == 3);
  CHECK(files[0].path == "out/m-00001-of-00003.gguf");
  CHECK(files[2].path == "out/m-00003-of-00003.gguf");
  CHECK(files[0].tensors.size() == 2);
  CHECK(files[2].tensors.size() == 1);
  CHECK(files[2].tensors[0].tensor == 4);
}

TEST_CASE("shards are split by bytes of padded data") {
  const TempDir folder;
  GgufBuilder builder;
  for (const char* name : {"a", "b", "c", "d"}) builder.add_tensor(name, {40}, "I8");  // 64 bytes each
  const Model model = model_of(builder, folder);
  CHECK(shards_of(model, {.shard_size = 128}).size() == 2);
  CHECK(shards_of(model, {.shard_size = 127}).size() == 4);
  CHECK(shards_of(model, {.shard_size = 1000}).size() == 1);
  CHECK(shards_of(model, {.shard_size = 1000})[0].path == "out/m-00001-of-00001.gguf");
}

TEST_CASE("a tensor larger than a shard gets a file of its own") {
  Model model;
  const auto add = [&](std::string name, std::uint64_t elements) {
    model.tensors.push_back(bare_tensor(std::move(name), {elements, 1}));
  };
  const auto tensors_of = [&](const gguf::SinkOptions& options) {
    std::vector<std::size_t> tensors;
    for (const OutputFile& file : shards_of(model, options)) tensors.push_back(file.tensors.size());
    return tensors;
  };
  using Counts = std::vector<std::size_t>;
  for (const auto& [name, elements] : {std::pair{"a", 8}, {"b", 8}, {"c", 100}, {"d", 8}, {"e", 8}})
    add(name, elements);
  for (const auto rule : {gguf::ShardRule::kSplit, gguf::ShardRule::kConvert}) {
    CHECK(tensors_of({.shard_size = 64, .shard_rule = rule}) == Counts{2, 1, 2});
    CHECK(tensors_of({.shard_size = 64, .shard_rule = rule, .metadata_shard = true}) == Counts{0, 2, 1, 2});
    CHECK(tensors_of({.shard_size = 1, .shard_rule = rule}) == Counts{1, 1, 1, 1, 1});
  }
  std::swap(model.tensors.front(), model.tensors[2]);  // the first one
  for (const auto rule : {gguf::ShardRule::kSplit, gguf::ShardRule::kConvert}) {
    CHECK(tensors_of({.shard_size = 64, .shard_rule = rule}) == Counts{1, 2, 2});
    CHECK(tensors_of({.shard_size = 64, .shard_rule = rule, .metadata_shard = true}) == Counts{0, 1, 2, 2});
  }
}

TEST_CASE("shards of a conversion are split by unpadded bytes, and a single file is not a shard") {
  Model model;
  for (const char* name : {"a", "b", "c", "d"}) model.tensors.push_back(bare_tensor(name, {10, 1}));  // 40 bytes
  model.tensors.push_back(bare_tensor("e", {100, 1}));
  const auto files_of = [&](gguf::SinkOptions options) {
    options.shard_rule = gguf::ShardRule::kConvert;
    std::vector<std::size_t> tensors;
    for (const OutputFile& file : shards_of(model, options)) tensors.push_back(file.tensors.size());
    return tensors;
  };
  using Counts = std::vector<std::size_t>;
  CHECK(files_of({.shard_size = 80}) == Counts{2, 2, 1});
  CHECK(files_of({.shard_size = 79}) == Counts{1, 1, 1, 1, 1});
  CHECK(files_of({.shard_tensors = 4}) == Counts{4, 1});
  CHECK(files_of({.shard_tensors = 4, .metadata_shard = true}) == Counts{0, 4, 1});
  CHECK(files_of({.metadata_shard = true}) == Counts{0, 5});
  CHECK(files_of({.shard_size = 560}) == Counts{5});
  const auto paths = [&](std::uint64_t tensors) {
    return lay_out(model, {.path = "out/m.x", .shard_tensors = tensors, .shard_rule = gguf::ShardRule::kConvert});
  };
  CHECK(paths(9).value()[0].path == "out/m.x");
  CHECK(paths(4).value()[1].path == "out/m-00002-of-00002.gguf");
}

TEST_CASE("a conversion does not pad a vocabulary-only file") {
  Model model;
  model.metadata.set("a", metadata_string("x"));
  const auto bytes = [&](gguf::ShardRule rule) {
    return lay_out(model, {.path = "v.gguf", .shard_rule = rule}).value()[0].bytes;
  };
  CHECK(bytes(gguf::ShardRule::kSplit) == 64);
  CHECK(bytes(gguf::ShardRule::kConvert) == 24 + 8 + 1 + 4 + 8 + 1);
}

TEST_CASE("the first shard has all metadata, the others only their own") {
  const TempDir folder;
  GgufBuilder builder;
  builder.metadata = {{"general.name", metadata_string("x")}, {"split.count", metadata_bool(true)}};
  builder.metadata[1].value = metadata_unsigned(MetadataType::kUint16, 0);
  builder.add_tensor("a", {8}).add_tensor("b", {8});
  const Model model = model_of(builder, folder);
  const std::vector<OutputFile> files = shards_of(model, {.shard_tensors = 1});
  const auto own = [](GgufBytes& out, std::uint64_t index) {
    out.entry("split.no", metadata_unsigned(MetadataType::kUint16, index));
    out.entry("split.tensors.count", metadata_unsigned(MetadataType::kInt32, 2));
    out.entry("split.count", metadata_unsigned(MetadataType::kUint16, 2));
  };
  GgufBytes first, second;
  own(first.head(1, 4).entry("general.name", metadata_string("x")), 0);
  own(second.head(1, 3), 1);
  CHECK(files[0].header == first.tensor("a", {8}, 0, 0).pad().bytes());
  CHECK(files[1].header == second.tensor("b", {8}, 0, 0).pad().bytes());
}

TEST_CASE("every shard contains a non-default alignment") {
  const TempDir folder;
  GgufBuilder builder;
  builder.set_alignment(256).add_tensor("a", {8}).add_tensor("b", {8}).add_tensor("c", {8});
  const Model model = model_of(builder, folder);
  for (const OutputFile& file : shards_of(model, {.shard_tensors = 1}))
    write_text(folder.file(file.path.substr(4)), assemble(model, file));
  const auto again = read_gguf(folder.file("m-00001-of-00003.gguf"));
  REQUIRE(again);
  CHECK(again.value().tensors[2].expression->extent.offset % 256 == 0);
}

TEST_CASE("what cannot be written is refused") {
  const TempDir folder;
  GgufBuilder builder;
  Model model = model_of(builder.add_tensor("a", {64}).add_tensor("b", {8}), folder);
  const gguf::SinkOptions one{.path = "out.gguf"};
  SECTION("a row that is not a multiple of the block") {
    model.tensors[1].type = &type_named("Q4_0");
    CHECK(refusal(model, one).find("tensor 'b' cannot be Q4_0: its rows of 8 elements") == 0);
  }
  SECTION("two tensors with the same name") {
    model.tensors[1].name = "a";
    CHECK(refusal(model, one) == "two tensors would be named 'a'");
  }
  SECTION("an invalid alignment") {
    model.metadata.set("general.alignment", metadata_unsigned(MetadataType::kUint32, 24));
    CHECK(refusal(model, one).find("general.alignment is 24 (uint32), not a power of two") == 0);
  }
  SECTION("a key that is not text") {
    model.metadata.set("\xff", metadata_bool(true));
    CHECK(refusal(model, one) == "metadata key '\\xff' is not UTF-8");
  }
  SECTION("more bytes than a file can have") {
    for (std::size_t i : {0, 1}) set_source(model.tensors[i], {1, {std::uint64_t{1} << 60, 1, 1, 1}}, "F32");
    CHECK(refusal(model, one) == "the output 'out.gguf' would be larger than 2^63 bytes");
  }
  SECTION("one tensor of more bytes than a file can have") {
    set_source(model.tensors[0], {1, {std::uint64_t{1} << 62, 1, 1, 1}}, "I8");
    model.tensors[0].type = &type_named("F32");
    CHECK(refusal(model, one).find("tensor 'a': ") == 0);
  }
}

TEST_CASE("the source's first shard is kept if it contains only metadata") {
  const TempDir folder;
  GgufBuilder builder;
  builder.metadata = {{"general.name", metadata_string("x")}};
  Model model = model_of(builder.add_tensor("a", {8}).add_tensor("b", {8}), folder);
  while (model.files.size() < 4) model.files.push_back(std::make_shared<const SourceFile>(*model.files[0]));
  for (const auto& [tensor, file] : {std::pair(0, 1), std::pair(1, 3)}) {
    Extent extent = model.tensors[tensor].expression->extent;
    extent.source = model.files[file];
    model.tensors[tensor].expression =
        expressions::extent(type_named("F32"), model.tensors[tensor].shape(), extent).value();
  }
  const std::vector<OutputFile> files = shards_of(model, {.shards = gguf::Shards::kSource});
  REQUIRE(files.size() == 3);  // the third file had no tensors
  CHECK(files[0].path == "out/m-00001-of-00003.gguf");
  CHECK(files[0].tensors.empty());
  CHECK(files[0].header.find("general.name") != std::string::npos);
  CHECK(files[0].bytes == files[0].header.size());
  CHECK(files[1].tensors.size() == 1);
  CHECK(files[2].tensors.size() == 1);
}

TEST_CASE("a path can contain the recipe name") {
  Model model;
  model.notes.set(notes::kRecipe, "Q4_K_M");
  const auto files = lay_out(model, {.path = "{recipe}/m-{recipe}.gguf"});
  REQUIRE(files);
  CHECK(files.value()[0].path == "Q4_K_M/m-Q4_K_M.gguf");
  CHECK(shards_of(model, {.shard_tensors = 1})[0].path == "out/m-00001-of-00001.gguf");
}

TEST_CASE("a path cannot contain the recipe name without a recipe") {
  Model model;
  CHECK(refusal(model, {.path = "m-{recipe}.gguf"}).find("no quantize stage names a recipe") != std::string::npos);
  model.notes.set(notes::kRecipe, "../up");
  CHECK(refusal(model, {.path = "m-{recipe}.gguf"}).find("'../up' cannot be part of a path") != std::string::npos);
}

TEST_CASE("more shards than the format can count are refused") {
  const TempDir folder;
  GgufBuilder builder;
  for (int i = 0; i < 65536; ++i) builder.add_tensor(fmt::format("t{}", i), {1}, "I8");
  const Model model = model_of(builder, folder);
  CHECK(refusal(model, {.path = "m", .shard_tensors = 1}).find("65536 tensors in 65536 files; at most 65535") == 0);
}
