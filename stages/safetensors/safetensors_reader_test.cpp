// Tests reading valid and invalid checkpoints.

#include <fmt/format.h>

#include <chrono>

#include "pipeline/io/platform/filesystem.h"
#include "stages/safetensors/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Returns "name: type of 2 x 3" for each tensor, one per line.
std::string words(const Result<Checkpoint>& checkpoint) {
  if (!checkpoint) FAIL(render(checkpoint.error()));
  std::string text;
  for (const CheckpointTensor& tensor : checkpoint.value().tensors)
    text += fmt::format("{}: {} of {}\n", tensor.name, tensor.values->type->name, describe(tensor.values->shape));
  return text;
}

// Returns the error for a file with these bytes: "what; detail".
std::string problem(std::string_view bytes) {
  const TempDir folder;
  write_text(folder.file("m.safetensors"), bytes);
  const auto checkpoint = read_safetensors(folder.file("m.safetensors"));
  if (checkpoint) return "none";
  CHECK(checkpoint.error().code == ExitCode::kBadInput);
  CHECK(checkpoint.error().where == folder.file("m.safetensors"));
  return checkpoint.error().what + (checkpoint.error().detail.empty() ? "" : "; " + checkpoint.error().detail);
}

std::string problem_of_header(std::string_view header, std::string_view data = {}) {
  return problem(safetensors_file(header, data));
}

// Returns a header with one tensor.
std::string header_of(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"t":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

std::string folder_problem(const TempDir& folder) {
  const auto checkpoint = read_safetensors(folder.path());
  if (checkpoint) return "none";
  CHECK(checkpoint.error().code == ExitCode::kBadInput);
  return fs::path(checkpoint.error().where).filename().string() + ": " + checkpoint.error().what;
}

SafetensorsTensor byte(const std::string& name) { return {name, "U8", {1}, "x"}; }

}  // namespace

TEST_CASE("tensors of a file are sorted by name, with the row length first") {
  const TempDir folder;
  const std::string path = folder.file("m.safetensors");
  write_text(path, safetensors_bytes({{"b", "F32", {3, 2}, std::string(24, 'b')},
                                      {"a", "BF16", {2, 3, 4}, std::string(48, 'a')},
                                      {"none", "F64", {0, 7}, ""},
                                      {"scalar", "I64", {}, "12345678"},
                                      {"conv", "F16", {5, 2, 3, 4, 6}, std::string(1440, 'c')}},
                                     R"({"format":"pt"})"));
  const auto checkpoint = read_safetensors(path);
  CHECK(words(checkpoint) ==
        "a: BF16 of 4 x 3 x 2\nb: F32 of 2 x 3\nconv: F16 of 6 x 4 x 3 x 10\nnone: F64 of 7 x 0\nscalar: I64 of 1\n");
  const std::vector<CheckpointTensor>& tensors = checkpoint.value().tensors;
  CHECK(tensors[0].values->as_extent()->offset == tensors[1].values->as_extent()->offset + 24);
  CHECK(tensors[2].dims == std::vector<std::uint64_t>{5, 2, 3, 4, 6});
  CHECK(tensors[4].dims.empty());
  REQUIRE(checkpoint.value().files.size() == 1);
  CHECK(checkpoint.value().files[0].source->path == path);
  REQUIRE(checkpoint.value().files[0].metadata.size() == 1);
  CHECK(checkpoint.value().files[0].metadata[0] == std::pair<std::string, std::string>("format", "pt"));
}

TEST_CASE("every type of the format is read, unsupported ones as bytes") {
  const TempDir folder;
  std::vector<SafetensorsTensor> tensors;
  for (const char* type : {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I64", "I32", "I16", "I8", "U64", "U32",
                           "U16", "U8", "BOOL"})
    tensors.push_back(
        {fmt::format("{:02}", tensors.size()), type, {8}, std::string(8 * type_named(type).block_bytes, 1)});
  tensors.push_back({"e8m0", "F8_E8M0", {4}, "abcd"});
  tensors.push_back({"f4", "F4", {3, 4}, "abcdef"});
  write_text(folder.file("m.safetensors"), safetensors_bytes(tensors));
  const auto checkpoint = read_safetensors(folder.file("m.safetensors"));
  words(checkpoint);
  for (std::size_t i = 0; i < 15; ++i) CHECK(checkpoint.value().tensors[i].values->type->name == tensors[i].dtype);
  CHECK(words(checkpoint).ends_with("e8m0: U8 of 4\nf4: U8 of 2 x 3\n"));
}

TEST_CASE("an invalid file gives one error with the problem and its position") {
  CHECK(problem("") == "0 bytes are too short for a safetensors file");
  CHECK(problem("1234567") == "7 bytes are too short for a safetensors file");
  CHECK(problem("version https://git-lfs.github.com/spec/v1\n") == "this is a Git LFS pointer, not the file itself");
  CHECK(problem(std::string("GGUF\3\0\0\0", 8)) ==
        "the header would have 14064895815 bytes, more than the format's limit of 100000000; at byte 0x0");
  CHECK(problem(std::string("\x40\0\0\0\0\0\0\0{}", 10)) == "the header of 64 bytes goes past the end of the file");
  CHECK(problem_of_header("") == "the header does not begin with '{'; at byte 0x8");
  CHECK(problem_of_header(" {}") == "the header does not begin with '{'; at byte 0x8");
  CHECK(problem_of_header("{\"a\":") == "not valid JSON: unexpected end of file; reading stopped at byte 0xd");
  CHECK(problem_of_header("{} x") ==
        "not valid JSON: unexpected data after the end of the document; reading stopped at byte 0xb");
  CHECK(problem_of_header("{\"\xff\":1}") == "not valid JSON: not UTF-8; reading stopped at byte 0xa");
  CHECK(problem_of_header("{\"t\":1}") == "'t' is not an object; reading stopped at byte 0xe");
  CHECK(problem_of_header("{\"t\":" + std::string(100, '[')) == "'t' is not an object; reading stopped at byte 0xd");
  CHECK(problem_of_header("{\"t\":{\"later\":" + std::string(100, '[')) ==
        "not valid JSON: nested more than 64 levels deep; reading stopped at byte 0x54");
  CHECK(problem_of_header(R"({"t":{}})") ==
        "tensor 't' needs dtype, shape, and two data_offsets; reading stopped at byte 0xe");
  CHECK(problem_of_header(R"({"__metadata__":{"a":1}})") ==
        "__metadata__: 'a' is not a string; reading stopped at byte 0x1e");
  CHECK(problem_of_header(header_of("F32", "[1]", "[0,4]"), "1234") == "none");
  CHECK(problem_of_header("{}   ") == "none");
}

TEST_CASE("a tensor that contradicts itself is refused") {
  const auto of = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    const std::string problem = problem_of_header(header_of(dtype, shape, offsets), "12345678");
    return problem.substr(0, problem.find("; reading"));
  };
  CHECK(of("F32", "[2]", "[0,8]") == "none");
  CHECK(of("C64", "[1]", "[0,8]") == "tensor 't' is of type 'C64', which is not supported");
  CHECK(of("F32", "[3]", "[0,8]") == "tensor 't' is at 0 to 8 of the data, but [3] of F32 takes 12 bytes");
  CHECK(of("F32", "[2]", "[8,0]") == "tensor 't' is at 8 to 0 of the data, but [2] of F32 takes 8 bytes");
  CHECK(of("F32", "[4]", "[0,16]") == "tensor 't' is at 0 to 16 of the data, past the end of the file");
  CHECK(of("F32", "[2]", "[18446744073709551608,18446744073709551616]") ==
        "tensor 't' has a value that is not a non-negative 64-bit integer in data_offsets");
  CHECK(of("F32", "[2]", "[18446744073709551607,18446744073709551615]") ==
        "tensor 't' is at 18446744073709551607 to 18446744073709551615 of the data, past the end of the file");
  CHECK(of("F32", "[4294967296,4294967296]", "[0,8]") ==
        "tensor 't' has the shape [4294967296, 4294967296]: more than 2^63 - 1 elements");
  CHECK(of("F32", "[4294967296,4294967296,0]", "[0,8]") ==
        "tensor 't' has the shape [4294967296, 4294967296, 0]: more than 2^63 - 1 elements");
  CHECK(of("F64", "[4611686018427387904]", "[0,8]") ==
        "tensor 't' is too large: 4611686018427387904 elements of F64 exceed 2^64 bytes");
  CHECK(of("F32", "[-2]", "[0,8]") == "tensor 't' has a value that is not a non-negative 64-bit integer in shape");
  CHECK(of("F32", "[2.0]", "[0,8]") == "tensor 't' has a value that is not a non-negative 64-bit integer in shape");
  CHECK(of("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") == "tensor 't' has more than 8 numbers in shape");
  CHECK(of("F32", "2", "[0,8]") == "tensor 't' needs exactly one shape, a list");
  CHECK(of("F32", "[2]", "[0]") == "tensor 't' needs dtype, shape, and two data_offsets");
  CHECK(of("F32", "[2],\"shape\":[2]", "[0,8]") == "tensor 't' needs exactly one shape, a list");
  CHECK(of("F4", "[2,3]", "[0,3]") == "tensor 't' of F4 has rows that are not a whole number of bytes: [2, 3]");
  CHECK(of("F32", "[2],\"later\":{\"a\":[1,{}]}", "[0,8]") == "none");
}

TEST_CASE("overlaps, gaps, and duplicate names are refused") {
  const auto two = [](std::string_view a, std::string_view b, std::string_view name = "b") {
    return problem_of_header(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                                         R"("{}":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                                         a, name, b),
                             "12345678");
  };
  CHECK(two("[0,4]", "[4,8]") == "none");
  CHECK(two("[4,8]", "[0,4]") == "none");
  CHECK(two("[0,4]", "[3,7]") == "tensor 'b' at byte 0x74 overlaps tensor 'a', which ends at byte 0x75");
  CHECK(two("[0,4]", "[0,4]") == "tensor 'b' at byte 0x71 overlaps tensor 'a', which ends at byte 0x75");
  CHECK(two("[0,4]", "[4,8]", "a") == "tensor 'a' appears twice; reading stopped at byte 0x3f");
  CHECK(problem_of_header(header_of("U8", "[4]", "[1,5]"), "12345") ==
        "1 bytes of the data do not belong to a tensor; at byte 0x3d");
  CHECK(problem_of_header(header_of("U8", "[4]", "[0,4]"), "12345") ==
        "1 bytes of the data do not belong to a tensor; at byte 0x41");
  CHECK(problem_of_header("{}", "1") == "1 bytes of the data do not belong to a tensor; at byte 0xa");
}

TEST_CASE("in a folder, the files of the index are read, otherwise those of the model, otherwise all") {
  const TempDir folder;
  write_text(folder.file("other.safetensors"), safetensors_bytes({byte("o")}));
  CHECK(words(read_safetensors(folder.path())) == "o: U8 of 1\n");
  write_text(folder.file("model-2.safetensors"), safetensors_bytes({byte("a")}));
  write_text(folder.file("model-1.safetensors"), safetensors_bytes({byte("z"), byte("b")}));
  CHECK(words(read_safetensors(folder.path())) == "b: U8 of 1\nz: U8 of 1\na: U8 of 1\n");
  write_text(folder.file("model.safetensors.index.json"), safetensors_index({{"o", "other.safetensors"}}));
  CHECK(words(read_safetensors(folder.path())) == "o: U8 of 1\n");
  CHECK(words(read_safetensors(folder.file("model.safetensors.index.json"))) == "o: U8 of 1\n");
  CHECK(words(read_safetensors(folder.file("model-2.safetensors"))) == "a: U8 of 1\n");
}

TEST_CASE("an index counts as a file of the checkpoint and is never overwritten") {
  const TempDir folder;
  write_text(folder.file("m.safetensors"), safetensors_bytes({byte("a")}));
  write_text(folder.file("model.safetensors.index.json"), safetensors_index({{"a", "m.safetensors"}}));
  const auto checkpoint = read_safetensors(folder.path());
  REQUIRE(checkpoint);
  REQUIRE(checkpoint.value().files.size() == 2);
  CHECK(checkpoint.value().files[1].source->path == folder.file("model.safetensors.index.json"));
}

TEST_CASE("a folder whose files do not match the index is refused") {
  const TempDir folder;
  const auto index = [&](const std::vector<std::pair<std::string, std::string>>& files) {
    write_text(folder.file("model.safetensors.index.json"), safetensors_index(files));
  };
  CHECK(folder_problem(folder) == folder.path().filename().string() + ": the folder contains no safetensors files");
  write_text(folder.file("model-1.safetensors"), safetensors_bytes({byte("a"), byte("b")}));
  index({{"a", "model-1.safetensors"}, {"b", "model-1.safetensors"}, {"c", "model-2.safetensors"}});
  CHECK(folder_problem(folder) == "model-2.safetensors: the file is missing");
  write_text(folder.file("model-2.safetensors"), safetensors_bytes({byte("d")}));
  CHECK(folder_problem(folder) ==
        "model.safetensors.index.json: 1 tensor is in the index but in no file; the first is 'c', which should be in "
        "model-2.safetensors");
  index({{"a", "model-1.safetensors"}, {"d", "model-2.safetensors"}});
  CHECK(folder_problem(folder) ==
        "model.safetensors.index.json: 1 tensor is in the files but not in the index; the first is 'b' in "
        "model-1.safetensors");
  write_text(folder.file("model-2.safetensors"), safetensors_bytes({byte("b")}));
  index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  CHECK(folder_problem(folder).starts_with("model-2.safetensors: tensor 'b' is also in "));
  for (const char* outside : {"../model-1.safetensors", "/etc/passwd", "..", ".", ""}) {
    index({{"a", outside}});
    CHECK(folder_problem(folder) == fmt::format("model.safetensors.index.json: the index places tensor 'a' in '{}', "
                                                "which is not the name of a file next to it",
                                                outside));
  }
  write_text(folder.file("model.safetensors.index.json"), "{\"weight_map\":[]}");
  CHECK(folder_problem(folder) == "model.safetensors.index.json: 'weight_map' is missing from the index");
}

TEST_CASE("a checkpoint of 200 files and a terabyte opens in a second") {
  const TempDir folder;
  constexpr std::uint64_t kFiles = 200, kBytes = std::uint64_t{5} << 30;
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    const std::string path = folder.file(fmt::format("model-{:05}-of-00200.safetensors", i + 1));
    const std::string header =
        fmt::format(R"({{"t{}":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}}}})", i, kBytes, kBytes);
    write_text(path, safetensors_file(header));
    std::error_code error;
    fs::resize_file(path, 8 + header.size() + kBytes, error);
    if (error) GGUFMILL_SKIP("no sparse files of 5 GB here");
  }
  const auto start = std::chrono::steady_clock::now();
  const auto checkpoint = read_safetensors(folder.path());
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // half a second on an idle machine
  if (!checkpoint) FAIL(render(checkpoint.error()));
  CHECK(checkpoint.value().tensors.size() == kFiles);
}
