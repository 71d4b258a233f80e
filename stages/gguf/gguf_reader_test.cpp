// Tests valid files of every kind.
#include <fmt/format.h>

#include <chrono>

#include "pipeline/io/io.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Result<Model> read_bytes(const std::string& bytes, const Types& types = {}) {
  const TempDir folder;
  write_text(folder.file("model.gguf"), bytes);
  return read_gguf(folder.file("model.gguf"), types);
}

std::string data_of(const std::string& path, const Tensor& tensor) {
  std::string data(tensor.source_bytes(), '\0');
  const auto file = InputFile::open(path);
  REQUIRE(file);
  REQUIRE(file.value()->read(tensor.expression->extent.offset, std::as_writable_bytes(std::span(data))));
  return data;
}

}  // namespace

TEST_CASE("every metadata type is read from every version and byte order, in order") {
  GgufBuilder builder;
  builder.version = GENERATE(1u, 2u, 3u);
  builder.big_endian = GENERATE(false, true);
  builder.metadata = every_metadata_type();
  CAPTURE(builder.version, builder.big_endian);
  const auto model = read_bytes(builder.build());
  REQUIRE(model);
  const auto& entries = model.value().metadata.entries();
  REQUIRE(entries.size() == builder.metadata.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CAPTURE(entries[i].key);
    CHECK(entries[i].key == builder.metadata[i].key);
    CHECK(entries[i].value == builder.metadata[i].value);
  }
}

TEST_CASE("tensors are found in every version and byte order") {
  GgufBuilder builder;
  builder.version = GENERATE(1u, 2u, 3u);
  builder.big_endian = GENERATE(false, true);
  builder.add_tensor("a", {5}, "I8", 1).add_tensor("b", {256, 3, 2, 2}, "Q4_K", 2).add_tensor("c", {}, "I8", 3);
  CAPTURE(builder.version, builder.big_endian);
  const TempDir folder;
  builder.write(folder.file("m.gguf"));
  const auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  const std::vector<Tensor>& tensors = model.value().tensors;
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[1].shape() == Shape{4, {256, 3, 2, 2}});
  CHECK(tensors[1].type == &type_named("Q4_K"));
  CHECK(tensors[2].shape() == Shape{1, {1, 1, 1, 1}});
  CHECK(tensors[2].source_bytes() == 1);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(tensors[i].expression->extent.big_endian == builder.big_endian);
    CHECK(tensors[i].expression->extent.offset % 32 == 0);
  }
  CHECK(data_of(folder.file("m.gguf"), tensors[0]) == builder.tensors[0].data);
  CHECK(data_of(folder.file("m.gguf"), tensors[2]) == builder.tensors[2].data);
}

TEST_CASE("words of big-endian data are swapped") {
  GgufBuilder builder;
  builder.big_endian = true;
  builder.tensors.push_back({"a", {2}, "F32", std::string("\0\0\x80\x3f\0\0\0\x40", 8)});
  const TempDir folder;
  builder.write(folder.file("m.gguf"));
  const auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  CHECK(data_of(folder.file("m.gguf"), model.value().tensors[0]) == std::string("\x3f\x80\0\0\x40\0\0\0", 8));
}

TEST_CASE("any valid alignment is respected") {
  GgufBuilder builder;
  const std::uint32_t alignment = GENERATE(1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u, 1024u, 4096u, 1u << 20);
  CAPTURE(alignment);
  builder.set_alignment(alignment).add_tensor("a", {3}, "I8", 7).add_tensor("b", {5}, "I16", 9);
  const TempDir folder;
  builder.write(folder.file("m.gguf"));
  const auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(model.value().tensors[i].expression->extent.offset % alignment == 0);
    CHECK(data_of(folder.file("m.gguf"), model.value().tensors[i]) == builder.tensors[i].data);
  }
}

TEST_CASE("gaps, data in any order, and missing padding at the end are accepted") {
  GgufBytes file;
  file.head(3, 0).tensor("late", {8}, 0, 128).tensor("early", {8}, 0, 32).tensor("next", {8}, 0, 64).pad();
  const std::uint64_t data = file.bytes().size();
  const auto model = read_bytes(file.zeros(160).bytes());
  REQUIRE(model);
  CHECK(model.value().tensors[0].expression->extent.offset == data + 128);
  CHECK(model.value().tensors[1].expression->extent.offset == data + 32);
}

TEST_CASE("tensors without elements are accepted wherever they lie") {
  const auto model = read_bytes(GgufBytes()
                                    .head(3, 0)
                                    .tensor("a", {0, 4}, 0, 0)
                                    .tensor("b", {8}, 0, 0)
                                    .tensor("c", {32, 0}, 2, 0)
                                    .pad()
                                    .zeros(32)
                                    .bytes());
  REQUIRE(model);
  CHECK(model.value().tensors[0].source_bytes() == 0);
  CHECK(model.value().tensors[1].source_bytes() == 32);
  CHECK(model.value().tensors[2].shape() == Shape{2, {32, 0, 1, 1}});
}

TEST_CASE("a file without metadata and tensors is a model") {
  const auto model = read_bytes(GgufBytes().head(0, 0).bytes());
  REQUIRE(model);
  CHECK(model.value().metadata.entries().empty());
  CHECK(model.value().files[0]->bytes == 24);
}

TEST_CASE("values keep bytes that are not text") {
  GgufBuilder builder;
  builder.metadata = {{"a", metadata_string(std::string("\xff\0<0x-1>", 8))},
                      {"b", metadata_array(MetadataType::kString, {metadata_string(std::string("\0\xc0", 2))})}};
  const auto model = read_bytes(builder.build());
  REQUIRE(model);
  CHECK(model.value().metadata.entries()[0].value == builder.metadata[0].value);
  CHECK(model.value().metadata.entries()[1].value == builder.metadata[1].value);
}

TEST_CASE("arrays nested 8 deep are read") {
  MetadataValue value = metadata_array(MetadataType::kUint8, {metadata_unsigned(MetadataType::kUint8, 5)});
  for (int depth = 1; depth < 8; ++depth) value = metadata_array(MetadataType::kArray, {value});
  GgufBuilder builder;
  builder.metadata = {{"deep", value}};
  const auto model = read_bytes(builder.build());
  REQUIRE(model);
  CHECK(*model.value().metadata.find("deep") == value);
}

TEST_CASE("metadata with an unexpected type is kept") {
  GgufBuilder builder;
  builder.metadata = {{"llama.block_count", metadata_string("many")},
                      {"tokenizer.ggml.scores", metadata_array(MetadataType::kUint8, {})},
                      {"general.architecture", metadata_bool(true)}};
  CHECK(read_bytes(builder.build()));
}

TEST_CASE("names too long for llama.cpp are read with one warning") {
  GgufBuilder builder;
  builder.add_tensor(std::string(63, 'a'), {1})
      .add_tensor(std::string(64, 'b'), {1})
      .add_tensor(std::string(9999, 'c'), {1});
  const auto model = read_bytes(builder.build());
  REQUIRE(model);
  REQUIRE(model.value().warnings.size() == 1);
  CHECK(model.value().warnings[0].find("2 tensor names are longer than the 63 bytes") == 0);
  CHECK(model.value().tensors[2].name == std::string(9999, 'c'));
}

TEST_CASE("types of kernel modules are read if their bytes need no swapping") {
  GgufBuilder builder;
  REQUIRE(builder.types.add({4242, "FOREIGN", TypeClass::kForeign, 4, 3, {}}));
  builder.add_tensor("t", {8}, "FOREIGN");
  const auto model = read_bytes(builder.build(), builder.types);
  REQUIRE(model);
  CHECK(model.value().tensors[0].source_bytes() == 6);
  CHECK_FALSE(read_bytes(builder.build()));
  builder.big_endian = true;
  const auto swapped = read_bytes(builder.build(), builder.types);
  REQUIRE_FALSE(swapped);
  CHECK(swapped.error().what.find("'t' is big-endian, and byte swapping of FOREIGN is not supported") !=
        std::string::npos);
}

TEST_CASE("types that their module describes are read in both byte orders") {
  GgufBuilder builder;
  TypeInfo type{4242, "FOREIGN", TypeClass::kForeign, 4, 3, {{FieldFormat::kWord16, 1, 1}}};
  type.fields[1] = {FieldFormat::kF32, 0, 1, true};
  type.row_header_bytes = 4;
  REQUIRE(builder.types.add(type));
  builder.add_tensor("t", {8, 2}, "FOREIGN");
  builder.big_endian = true;
  const auto model = read_bytes(builder.build(), builder.types);
  REQUIRE(model);
  CHECK(model.value().tensors[0].source_bytes() == 2 * (4 + 2 * 3));
  CHECK(model.value().tensors[0].expression->extent.big_endian);
}

TEST_CASE("a tensor with interleaved rows has whole groups of them") {
  GGUFMILL_NEEDS("Q4_K_R4");
  GgufBuilder builder;
  builder.add_tensor("t", {256, 8}, "Q4_K_R4");
  const auto model = read_bytes(builder.build());
  REQUIRE(model);
  CHECK(model.value().tensors[0].type->name == "Q4_K_R4");
  CHECK(model.value().tensors[0].source_bytes() == 8 * 144);
  GgufBuilder odd;
  odd.add_tensor("t", {256, 6}, "Q4_K_R4");
  const auto refused = read_bytes(odd.build());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "tensor 't' has 6 rows, not a multiple of the 4 that Q4_K_R4 interleaves");
}

TEST_CASE("every hostile file gives one error with its file and offset") {
  const TempDir folder;
  const std::string path = folder.file("hostile.gguf");
  for (const HostileFile& file : hostile_files()) {
    CAPTURE(file.name);
    write_text(path, file.bytes);
    const auto model = read_gguf(path);
    REQUIRE_FALSE(model);
    const Error& error = model.error();
    CAPTURE(render(error));
    CHECK(error.code == ExitCode::kBadInput);
    CHECK(error.where == path);
    CHECK(error.what.find(file.says) != std::string::npos);
    CHECK(error.what.find('\n') == std::string::npos);
    CHECK(error.detail.find(fmt::format("at byte {:#x},", file.at)) == 0);
  }
}

TEST_CASE("a file truncated anywhere gives an error") {
  GgufBuilder builder;
  builder.version = GENERATE(1u, 3u);
  builder.metadata = every_metadata_type();
  builder.add_tensor("a", {8}).add_tensor("b", {256, 2}, "Q6_K");
  const std::string whole = builder.build();
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  const std::size_t padding = 32 - 2 * 210 % 32;  // padding after the last tensor, which is optional
  write_text(path, std::string_view(whole).substr(0, whole.size() - padding));
  CHECK(read_gguf(path));
  for (std::size_t bytes = whole.size() - padding; bytes-- > 0;) {
    CAPTURE(bytes);
    fs::resize_file(path, bytes);
    const auto model = read_gguf(path);
    REQUIRE_FALSE(model);
    REQUIRE(model.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("values over a gigabyte are refused before they are loaded") {
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  GgufBytes file;
  SECTION("a string") { file.head(0, 1).key("k", 8).u64((std::uint64_t{1} << 30) + 1); }
  SECTION("an array") { file.head(0, 1).key("k", 9).u32(10).u64((std::uint64_t{1} << 27) + 1); }
  SECTION("strings in an array") { file.head(0, 1).key("k", 9).u32(8).u64(2).u64(5).raw("12345").u64(1 << 30); }
  write_text(path, file.bytes());
  std::error_code error;
  fs::resize_file(path, std::uint64_t{1} << 36, error);
  if (error) GGUFMILL_SKIP("no sparse files of 64 GB here");
  const auto model = read_gguf(path);
  REQUIRE_FALSE(model);
  CHECK(model.error().what == "a value is larger than the limit of 1073741824 bytes");
}

TEST_CASE("a path that is not a regular file is refused") {
  const TempDir empty;  // in a folder with a model, that is found
  for (const std::string& path : {std::string("/dev/zero"), std::string(empty.path())}) {
    const auto model = read_gguf(path);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ExitCode::kBadInput);
  }
}

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

TEST_CASE("100000 tensors and as many keys are read quickly") {
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
  CHECK(seconds.count() < 5);  // comparing all pairs would take minutes
}

TEST_CASE("a file of 4 TB is opened as quickly as a small one") {
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  write_text(path, GgufBytes().head(1, 0).tensor("t", {1u << 20, 1u << 20}, 0, 0).pad().bytes());
  std::error_code error;
  fs::resize_file(path, (std::uint64_t{1} << 42) + 96, error);
  if (error) GGUFMILL_SKIP("no sparse files of 4 TB here");
  const auto start = std::chrono::steady_clock::now();
  CHECK(read_gguf(path));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 1);
}
