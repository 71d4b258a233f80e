// Tests that models can be written back unchanged.

#include "pipeline/io/io.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "tests/support/sink_testing.h"
#include "tests/support/synth_model.h"

using namespace ggufmill;

namespace {

// Returns the bytes of a new file with the model read from `path`.
std::string rewritten(const std::string& path) {
  const auto model = read_gguf(path);
  REQUIRE(model);
  const auto files = lay_out(model.value(), {.path = "out.gguf"});
  REQUIRE(files);
  REQUIRE(files.value().size() == 1);
  return assemble(model.value(), files.value()[0]);
}

}  // namespace

TEST_CASE("a file of version 3 is rewritten unchanged") {
  const TempDir folder;
  GgufBuilder builder = sample_model();
  const std::uint32_t alignment = GENERATE(0u, 1u, 8u, 32u, 64u, 4096u);
  CAPTURE(alignment);
  if (alignment != 0) builder.set_alignment(alignment);
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == builder.build());
}

TEST_CASE("every version and byte order becomes the same file of version 3") {
  const TempDir folder;
  GgufBuilder builder = sample_model();
  const std::string expected = builder.build();
  builder.version = GENERATE(1u, 2u, 3u);
  builder.big_endian = GENERATE(false, true);
  CAPTURE(builder.version, builder.big_endian);
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == expected);
}

TEST_CASE("a model with only metadata can be written") {
  const TempDir folder;
  GgufBuilder builder;
  builder.metadata = every_metadata_type();
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == builder.build());
}

TEST_CASE("data in any order and with gaps is packed in list order") {
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

TEST_CASE("trailing dimensions of 1 are kept, and a tensor without dimensions gets one") {
  const TempDir folder;
  GgufBuilder builder, expected;
  builder.add_tensor("a", {4, 1}).add_tensor("b", {1, 1, 1, 1}).add_tensor("c", {}).add_tensor("d", {1, 2, 1});
  expected.add_tensor("a", {4, 1}).add_tensor("b", {1, 1, 1, 1}).add_tensor("c", {1}).add_tensor("d", {1, 2, 1});
  builder.write(folder.file("m.gguf"));
  CHECK(rewritten(folder.file("m.gguf")) == expected.build());
}

TEST_CASE("a model in several files becomes one without split keys") {
  const TempDir folder;
  GgufBuilder builder = sample_model();
  const Model model = model_of(builder, folder);
  for (const OutputFile& file : shards_of(model, {.shard_tensors = 2})) {
    const std::string name = file.path.substr(file.path.find("m-"));
    write_text(folder.file(name), assemble(model, file));
  }
  CHECK(rewritten(folder.file("m-00001-of-00003.gguf")) == builder.build());
}

// The files may omit the final padding that the format requires.
TEST_CASE("real files are rewritten byte for byte") {
  const auto shared = unversioned_data();
  if (!shared) GGUFMILL_SKIP("no shared data");
  std::size_t same = 0, all = 0;
  for (const auto& entry : fs::directory_iterator(*shared / "real")) {
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

TEST_CASE("models of real size are rewritten with the same header") {
  const auto shared = shared_data();
  if (!shared) GGUFMILL_SKIP("no shared data");
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  std::size_t same = 0, all = 0;
  for (const char* kind : {"models", "full"})
    for (const auto& entry : fs::directory_iterator(*shared / "golden" / kind)) {
      CAPTURE(entry.path());
      ++all;
      synth::write_model(synth::load_spec(entry.path()), path, true);
      const auto model = read_gguf(path);
      REQUIRE(model);
      const auto files = lay_out(model.value(), {.path = "out.gguf"});
      REQUIRE(files);
      std::string header(files.value()[0].header.size(), ' ');
      REQUIRE(InputFile::open(path).value()->read(0, std::as_writable_bytes(std::span(header))));
      const bool equal = header == files.value()[0].header && files.value()[0].bytes == model.value().files[0]->bytes;
      CHECK(equal);
      same += equal;
    }
  WARN("headers identical: " << same << " of " << all);
}

// The digests are those of the concatenated shards that the reference's gguf-split makes of the same file.
TEST_CASE("shards match the reference") {
  const auto shared = shared_data();
  if (!shared) GGUFMILL_SKIP("no shared data");
  const TempDir folder;
  synth::write_model(synth::load_spec(*shared / "golden/models/tiny-llama.json"), folder.file("m.gguf"));
  const auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  const auto digest = [&](const gguf::SinkOptions& options) {
    std::string all;
    for (const OutputFile& file : shards_of(model.value(), options)) all += assemble(model.value(), file);
    return sha256_hex(as_bytes(all));
  };
  CHECK(digest({.shard_tensors = 7}) == "246724949735d9243b6b2e1812e6f11f4c6a5a54105917b65f8ac6fe2abbee41");
  CHECK(digest({.shard_size = 1000000}) == "737b5f6c7eceb5ca2f5576e5bd3e897c8cb8870886b9f57d3b96b00e94f9e313");
}
