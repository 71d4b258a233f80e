// Layout of the files that are written.

#include <fmt/format.h>

#include "pipeline/core/byte_order.h"
#include "pipeline/io/io.h"
#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/shared_data.h"
#include "tests/support/skip.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

ConfigNode path_node(std::string path) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = std::move(path);
  return node;
}

ConfigNode options_node(std::string path, std::string key, std::string value) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kMap;
  node.entries.push_back({"path", {}, path_node(std::move(path))});
  node.entries.push_back({std::move(key), {}, path_node(std::move(value))});
  return node;
}

// What the engine makes of a layout when nothing is converted.
std::string assemble(const Model& model, const OutputFile& file) {
  std::string out = file.header;
  out.resize(file.bytes);
  for (const Placement& place : file.tensors) {
    const TensorSource& source = model.tensors[place.tensor].source;
    const auto input = InputFile::open(model.files[source.file].path);
    const auto into = std::as_writable_bytes(std::span(out).subspan(place.offset, place.bytes));
    REQUIRE(input.value()->read(source.offset, into));
    if (source.big_endian) swap_words(*source.type, into);
  }
  return out;
}

// The bytes of the model at `path` written again.
std::string rewritten(const std::string& path) {
  const auto model = read_gguf(path);
  REQUIRE(model);
  const auto files = gguf_sink().layout(model.value(), path_node("out.gguf"));
  REQUIRE(files);
  REQUIRE(files.value().size() == 1);
  return assemble(model.value(), files.value()[0]);
}

GgufBuilder sample() {
  GgufBuilder builder;
  builder.metadata = every_metadata_type();
  builder.add_tensor("a", {5}, "I8", 1).add_tensor("b", {256, 3}, "Q4_K", 2).add_tensor("c", {7}, "F64", 3);
  return builder.add_tensor("d", {0, 4}, "F32").add_tensor("e", {32, 1, 2}, "Q8_0", 4);
}

std::vector<OutputFile> shards_of(const Model& model, const std::string& key, const std::string& value) {
  auto files = gguf_sink().layout(model, options_node("out/m.gguf", key, value));
  REQUIRE(files);
  return std::move(files.value());
}

std::string refusal(const Model& model, const ConfigNode& node) {
  const auto files = gguf_sink().layout(model, node);
  REQUIRE_FALSE(files);
  CHECK(files.error().code == ExitCode::kUsage);
  return files.error().what;
}

Model model_of(const GgufBuilder& builder, const TempDir& folder) {
  builder.write(folder.file("m.gguf"));
  auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  return std::move(model.value());
}

}  // namespace

TEST_CASE("a file of version 3 is written again as it is") {
  const TempDir folder;
  GgufBuilder builder = sample();
  const std::uint32_t alignment = GENERATE(0u, 1u, 8u, 32u, 64u, 4096u);
  CAPTURE(alignment);
  if (alignment != 0) builder.set_alignment(alignment);
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == builder.build());
}

TEST_CASE("every version and byte order becomes the same file of version 3") {
  const TempDir folder;
  GgufBuilder builder = sample();
  const std::string expected = builder.build();
  builder.version = GENERATE(1u, 2u, 3u);
  builder.big_endian = GENERATE(false, true);
  CAPTURE(builder.version, builder.big_endian);
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == expected);
}

TEST_CASE("a model of metadata alone is written") {
  const TempDir folder;
  GgufBuilder builder;
  builder.metadata = every_metadata_type();
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == builder.build());
}

TEST_CASE("data in any order and with gaps is packed in the order of the list") {
  const TempDir folder;
  GgufBytes file;
  file.head(2, 0).tensor("late", {8}, 0, 128).tensor("early", {8}, 0, 32).pad();
  file.raw(std::string(32, '.')).raw(std::string(32, 'e')).zeros(64).raw(std::string(32, 'l'));
  write_text(folder.file("m.gguf"), file.bytes());
  GgufBytes expected;
  expected.head(2, 0).tensor("late", {8}, 0, 0).tensor("early", {8}, 0, 32).pad();
  expected.raw(std::string(32, 'l')).raw(std::string(32, 'e'));
  CHECK(rewritten(folder.file("m.gguf")) == expected.bytes());
}

TEST_CASE("dimensions of 1 at the end are left out, as the reference does") {
  const TempDir folder;
  GgufBuilder builder, expected;
  builder.add_tensor("a", {4, 1}).add_tensor("b", {1, 1, 1, 1}).add_tensor("c", {}).add_tensor("d", {1, 2, 1});
  expected.add_tensor("a", {4}).add_tensor("b", {1}).add_tensor("c", {1}).add_tensor("d", {1, 2});
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == expected.build());
}

TEST_CASE("a model in several files becomes one without split keys") {
  const TempDir folder;
  GgufBuilder builder = sample();
  const Model model = model_of(builder, folder);
  for (const OutputFile& file : shards_of(model, "shard_tensors", "2")) {
    const std::string name = file.path.substr(file.path.find("m-"));
    write_text(folder.file(name), assemble(model, file));
  }
  CHECK(rewritten(folder.file("m-00001-of-00003.gguf")) == builder.build());
}

TEST_CASE("shards are cut by number of tensors") {
  const TempDir folder;
  const Model model = model_of(sample(), folder);
  const std::vector<OutputFile> files = shards_of(model, "shard_tensors", "2");
  REQUIRE(files.size() == 3);
  CHECK(files[0].path == "out/m-00001-of-00003.gguf");
  CHECK(files[2].path == "out/m-00003-of-00003.gguf");
  CHECK(files[0].tensors.size() == 2);
  CHECK(files[2].tensors.size() == 1);
  CHECK(files[2].tensors[0].tensor == 4);
}

TEST_CASE("shards are cut by bytes of padded data") {
  const TempDir folder;
  GgufBuilder builder;
  for (const char* name : {"a", "b", "c", "d"}) builder.add_tensor(name, {40}, "I8");  // 64 bytes each
  const Model model = model_of(builder, folder);
  CHECK(shards_of(model, "shard_size", "128").size() == 2);
  CHECK(shards_of(model, "shard_size", "127").size() == 4);
  CHECK(shards_of(model, "shard_size", "1K").size() == 1);
  CHECK(shards_of(model, "shard_size", "1K")[0].path == "out/m-00001-of-00001.gguf");
}

TEST_CASE("the first shard has all metadata, the others only their own") {
  const TempDir folder;
  GgufBuilder builder;
  builder.metadata = {{"general.name", metadata_string("x")}, {"split.count", metadata_bool(true)}};
  builder.metadata[1].value = metadata_unsigned(MetadataType::kUint16, 0);
  builder.add_tensor("a", {8}).add_tensor("b", {8});
  const Model model = model_of(builder, folder);
  const std::vector<OutputFile> files = shards_of(model, "shard_tensors", "1");
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

TEST_CASE("every shard says an alignment that is not the usual one") {
  const TempDir folder;
  GgufBuilder builder;
  builder.set_alignment(256).add_tensor("a", {8}).add_tensor("b", {8}).add_tensor("c", {8});
  const Model model = model_of(builder, folder);
  for (const OutputFile& file : shards_of(model, "shard_tensors", "1"))
    write_text(folder.file(file.path.substr(4)), assemble(model, file));
  const auto again = read_gguf(folder.file("m-00001-of-00003.gguf"));
  REQUIRE(again);
  CHECK(again.value().tensors[2].source.offset % 256 == 0);
}

TEST_CASE("what cannot be written is refused") {
  const TempDir folder;
  GgufBuilder builder;
  Model model = model_of(builder.add_tensor("a", {64}).add_tensor("b", {8}), folder);
  const ConfigNode one = path_node("out.gguf");
  SECTION("a tensor larger than a shard") {
    CHECK(refusal(model, options_node("out.gguf", "shard_size", "100")).find("tensor 'a' has 256 bytes, more than") ==
          0);
  }
  SECTION("a row that is no multiple of the block") {
    model.tensors[1].type = &type_named("Q4_0");
    CHECK(refusal(model, one).find("tensor 'b' cannot be Q4_0: its rows of 8 elements") == 0);
  }
  SECTION("two tensors of one name") {
    model.tensors[1].name = "a";
    CHECK(refusal(model, one) == "two tensors would be named 'a'");
  }
  SECTION("an alignment that is none") {
    model.metadata.set("general.alignment", metadata_unsigned(MetadataType::kUint32, 24));
    CHECK(refusal(model, one).find("general.alignment is 24 (uint32), not a power of two") == 0);
  }
  SECTION("a key that is no text") {
    model.metadata.set("\xff", metadata_bool(true));
    CHECK(refusal(model, one) == "metadata key '\\xff' is not UTF-8");
  }
  SECTION("more bytes than a file has") {
    model.tensors[0].shape = model.tensors[1].shape = Shape{1, {std::uint64_t{1} << 60, 1, 1, 1}};
    CHECK(refusal(model, one) == "the output 'out.gguf' would be larger than 2^63 bytes");
  }
  SECTION("one tensor of more bytes than a file has") {
    model.tensors[0].shape.dims[0] = std::uint64_t{1} << 62;
    CHECK(refusal(model, one).find("tensor 'a': ") == 0);
  }
}

TEST_CASE("a path can name the recipe") {
  Model model;
  model.recipe = "Q4_K_M";
  const auto files = gguf_sink().layout(model, path_node("{recipe}/m-{recipe}.gguf"));
  REQUIRE(files);
  CHECK(files.value()[0].path == "Q4_K_M/m-Q4_K_M.gguf");
  CHECK(shards_of(model, "shard_tensors", "1")[0].path == "out/m-00001-of-00001.gguf");
}

TEST_CASE("a path cannot name a recipe that is none") {
  Model model;
  CHECK(refusal(model, path_node("m-{recipe}.gguf")).find("no quantize stage has given one") != std::string::npos);
  model.recipe = "../up";
  CHECK(refusal(model, path_node("m-{recipe}.gguf")).find("'../up' cannot be part of a path") != std::string::npos);
}

TEST_CASE("more shards than the format can count are refused") {
  const TempDir folder;
  GgufBuilder builder;
  for (int i = 0; i < 65536; ++i) builder.add_tensor(fmt::format("t{}", i), {1}, "I8");
  const Model model = model_of(builder, folder);
  CHECK(refusal(model, options_node("m", "shard_tensors", "1")).find("65536 tensors in 65536 files; at most 65535") ==
        0);
}

// The files may lack the zeros at the end that the format asks for.
TEST_CASE("real files are written again byte for byte") {
  const auto shared = shared_data();
  if (!shared) GGUFMILL_SKIP("no shared data");
  std::size_t same = 0, all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "real")) {
    if (entry.path().extension() != ".gguf") continue;
    CAPTURE(entry.path());
    ++all;
    std::string expected = read_text(entry.path());
    expected.resize((expected.size() + 31) / 32 * 32);
    const bool equal = rewritten(entry.path()) == expected;
    CHECK(equal);
    same += equal;
  }
  CHECK(all > 0);
  WARN("real files identical: " << same << " of " << all);
}

TEST_CASE("models of real size are written with the header they have") {
  const auto shared = shared_data();
  if (!shared) GGUFMILL_SKIP("no shared data");
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  std::size_t same = 0, all = 0;
  for (const char* kind : {"models", "full"})
    for (const auto& entry : std::filesystem::directory_iterator(*shared / "golden" / kind)) {
      CAPTURE(entry.path());
      ++all;
      synth::write_model(synth::load_spec(entry.path()), path, true);
      const auto model = read_gguf(path);
      REQUIRE(model);
      const auto files = gguf_sink().layout(model.value(), path_node("out.gguf"));
      REQUIRE(files);
      std::string header(files.value()[0].header.size(), ' ');
      REQUIRE(InputFile::open(path).value()->read(0, std::as_writable_bytes(std::span(header))));
      const bool equal = header == files.value()[0].header && files.value()[0].bytes == model.value().files[0].bytes;
      CHECK(equal);
      same += equal;
    }
  WARN("headers identical: " << same << " of " << all);
}
