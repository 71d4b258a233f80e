// Tests of valid torch.save files.

#include "stages/huggingface/checkpoint/torch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/serialize.hpp>

#include "pipeline/io/source_path.h"
#include "tests/support/catch.h"
#include "tests/support/expression_values.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_builder.h"

using namespace ggufmill;
using huggingface::read_torch_checkpoint;
using huggingface::read_torch_file;

namespace {

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}
std::string counting(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return floats(values);
}

// Returns "name: type of 2 x 3 = 1 2 3 4 5 6", one line per tensor.
std::string words(const std::vector<CheckpointTensor>& tensors) {
  std::string text;
  for (const CheckpointTensor& tensor : tensors)
    text += fmt::format("{}: {} of {} = {}\n", tensor.name, tensor.values->type->name, describe(tensor.values->shape),
                        fmt::join(expression_values(*tensor.values), " "));
  return text;
}

std::string words(const std::string& file) {
  const TempDir folder;
  write_text(folder.file("pytorch_model.bin"), file);
  const auto opened = open_source(folder.file("pytorch_model.bin"));
  const auto tensors = read_torch_file(opened.value());
  if (!tensors) return render(tensors.error());
  return words(tensors.value());
}
std::string words(const std::vector<TorchTensor>& tensors, const TorchOptions& options = {}) {
  return words(torch_file(tensors, options));
}

const std::vector<TorchTensor> kTwo = {{"b", "FloatStorage", {2, 3}, counting(6)},
                                       {"a", "HalfStorage", {2}, std::string("\x00\x3c\x00\xc0", 4)}};
constexpr const char* kTwoInWords = "b: F32 of 3 x 2 = 0 1 2 3 4 5\na: F16 of 2 = 1 -2\n";

}  // namespace

TEST_CASE("tensors are in the order of the dictionary, with the row length first") {
  CHECK(words(kTwo) == kTwoInWords);
}

TEST_CASE("protocols 2 to 5 are equivalent") {
  for (int protocol = 2; protocol <= 5; ++protocol) CHECK(words(kTwo, {.protocol = protocol}) == kTwoInWords);
}

TEST_CASE("files from before PyTorch 1.6 are read") { CHECK(words(kTwo, {.before_1_6 = true}) == kTwoInWords); }

TEST_CASE("single values are read, whatever else is in the file") {
  const TempDir folder;
  for (const bool is_old : {false, true}) {
    write_text(folder.file("values.pt"),
               torch_file(kTwo, {.before_1_6 = is_old, .numbers = {{"id", 7}, {"minus", -3}}}));
    const auto value = [&](std::string_view name) {
      const auto read = huggingface::read_torch_value(open_source(folder.file("values.pt")).value(), name);
      return read ? boost::json::serialize(read.value()) : read.error().what;
    };
    CHECK(value("id") == "7");
    CHECK(value("minus") == "-3");
    CHECK(value("a") == "[1E0,-2E0]");
    CHECK(value("b") == "'b' is neither a whole number nor a tensor of one dimension");
    CHECK(value("c") == "null");
  }
  CHECK(words(torch_file(kTwo, {.numbers = {{"id", 7}}})).find("error: 'id' is a number, not a tensor") !=
        std::string::npos);
}

TEST_CASE("an archive with 64-bit sizes is read") {
  const std::string pickle = torch_pickle(kTwo);
  CHECK(words(zip_file({{"x/data.pkl", pickle}, {"x/data/0", kTwo[0].data}, {"x/data/1", kTwo[1].data}}, true)) ==
        kTwoInWords);
}

TEST_CASE("every known type is read under its name") {
  std::vector<TorchTensor> tensors;
  const std::vector<std::pair<std::string, std::string>> types = {{"DoubleStorage", "F64"},
                                                                  {"FloatStorage", "F32"},
                                                                  {"HalfStorage", "F16"},
                                                                  {"BFloat16Storage", "BF16"},
                                                                  {"LongStorage", "I64"},
                                                                  {"IntStorage", "I32"},
                                                                  {"ShortStorage", "I16"},
                                                                  {"CharStorage", "I8"},
                                                                  {"ByteStorage", "U8"},
                                                                  {"BoolStorage", "BOOL"},
                                                                  {"float8_e4m3fn", "F8_E4M3"},
                                                                  {"float8_e5m2", "F8_E5M2"},
                                                                  {"uint16", "U16"},
                                                                  {"uint32", "U32"},
                                                                  {"uint64", "U64"},
                                                                  {"float8_e8m0fnu", "U8"}};
  for (const auto& [storage, type] : types) tensors.push_back({storage, storage, {2}, std::string(16, '\0')});
  const TempDir folder;
  write_text(folder.file("f"), torch_file(tensors));
  const auto read = read_torch_file(open_source(folder.file("f")).value());
  if (!read) FAIL(render(read.error()));
  for (std::size_t i = 0; i < types.size(); ++i) CHECK(read.value()[i].values->type->name == types[i].second);
}

TEST_CASE("scalars, empty tensors and more than four dimensions") {
  CHECK(words({{"scalar", "FloatStorage", {}, counting(1)},
               {"none", "FloatStorage", {0, 7}, ""},
               {"conv", "FloatStorage", {2, 1, 1, 1, 2}, counting(4)}}) ==
        "scalar: F32 of 1 = 0\nnone: F32 of 7 x 0 = \nconv: F32 of 2 x 1 x 1 x 2 = 0 1 2 3\n");
}

TEST_CASE("parameters are read as the tensors in them") {
  TorchTensor parameter = kTwo[0];
  parameter.is_parameter = true;
  CHECK(words({parameter, kTwo[1]}) == kTwoInWords);
}

TEST_CASE("tensors share a storage, entirely or in part") {
  CHECK(words({{"embedding", "FloatStorage", {2, 2}, counting(6), "s"},
               {"head", "FloatStorage", {2, 2}, "", "s"},
               {"rest", "FloatStorage", {1, 2}, "", "s", 4}}) ==
        "embedding: F32 of 2 x 2 = 0 1 2 3\nhead: F32 of 2 x 2 = 0 1 2 3\nrest: F32 of 2 x 1 = 4 5\n");
}

TEST_CASE("views are put in the order of their elements") {
  const std::string data = counting(24);
  const auto view = [&](std::vector<std::uint64_t> dims, std::vector<std::uint64_t> steps, std::uint64_t offset = 0) {
    const std::string text = words({{"t", "FloatStorage", std::move(dims), data, "", offset, std::move(steps)}});
    return text.starts_with("t: ") ? text.substr(text.find("of ")) : text;
  };
  CHECK(view({3, 2}, {1, 3}) == "of 2 x 3 = 0 3 1 4 2 5\n");                     // x.T
  CHECK(view({2, 2}, {6, 1}, 8) == "of 2 x 2 = 8 9 14 15\n");                    // x[1:3, 2:4]
  CHECK(view({4}, {6}, 5) == "of 4 = 5 11 17 23\n");                             // x[:, 5]
  CHECK(view({2, 3}, {12, 2}, 1) == "of 3 x 2 = 1 3 5 13 15 17\n");              // x[::2, 1::2]
  CHECK(view({2, 2, 2}, {1, 12, 4}) == "of 2 x 2 x 2 = 0 4 12 16 1 5 13 17\n");  // permuted and sliced
  CHECK(view({3, 1, 2}, {1, 77, 3}) == "of 2 x 1 x 3 = 0 3 1 4 2 5\n");          // one element: any stride
  CHECK(view({1, 2}, {5, 1}, 3) == "of 2 x 1 = 3 4\n");
  CHECK(view({2, 2}, {0, 1}).find("error: tensor 't' is a view [2, 2] with strides [0, 1], which is not supported") !=
        std::string::npos);                                                   // expanded
  CHECK(view({3, 3}, {1, 1}).find("is a view [3, 3]") != std::string::npos);  // overlapping
  CHECK(view({2, 3}, {5, 2}).find("is a view [2, 3]") != std::string::npos);
  CHECK(view({2, 2}, {6, 1}, 5).find("is a view [2, 2]") != std::string::npos);  // wraps past the end of a row
}

TEST_CASE("a big-endian file is byte-swapped when read") {
  const TempDir folder;
  write_text(folder.file("f"), torch_file(kTwo, {.byte_order = "big"}));
  const auto tensors = read_torch_file(open_source(folder.file("f")).value());
  REQUIRE(tensors);
  CHECK(tensors.value()[0].values->as_extent()->big_endian);
}

TEST_CASE("of a name set twice, the later tensor is used, in the position of the first") {
  CHECK(words({{"a", "FloatStorage", {1}, floats({1})},
               {"b", "FloatStorage", {1}, floats({2})},
               {"a", "FloatStorage", {1}, floats({3})}}) == "a: F32 of 1 = 3\nb: F32 of 1 = 2\n");
}

TEST_CASE("a dictionary of pairs, as Python 2 wrote it") {
  PickleBuilder pickle;
  pickle.name("collections", "OrderedDict").raw("]](").text("a").name("torch._utils", "_rebuild_tensor").raw("((");
  pickle.text("storage").name("torch.cuda", "FloatStorage").text("0").text("cuda:0").number(1).raw("tQ").number(0);
  pickle.tuple({1}).tuple({1}).raw("tRea\x85R");
  CHECK(words(zip_of_pickle(pickle.stop(), {{"pytorch_model/data/0", floats({5})}})) == "a: F32 of 1 = 5\n");
}

TEST_CASE("an index lists the files; without one, all are used, by name") {
  const TempDir folder;
  const auto read = [&] {
    const auto checkpoint = read_torch_checkpoint(folder.path());
    if (!checkpoint) return checkpoint.error().what;
    return checkpoint.value() ? words(checkpoint.value()->tensors) : std::string("none");
  };
  CHECK(read() == "none");
  write_text(folder.file("pytorch_model-2.bin"), torch_file({{"a", "FloatStorage", {1}, floats({1})}}));
  write_text(folder.file("pytorch_model-1.bin"), torch_file({{"b", "FloatStorage", {1}, floats({2})}}));
  write_text(folder.file("training_args.bin"), "no tensors");
  CHECK(read() == "b: F32 of 1 = 2\na: F32 of 1 = 1\n");
  write_text(folder.file("pytorch_model.bin.index.json"), R"({"weight_map":{"a":"pytorch_model-2.bin"},"x":NaN})");
  CHECK(read() == "a: F32 of 1 = 1\n");
  write_text(folder.file("pytorch_model.bin.index.json"),
             R"({"weight_map":{"a":"pytorch_model-2.bin","c":"pytorch_model-2.bin"}})");
  CHECK(read() == "1 tensor is in the index but in no file; the first is 'c', which should be in pytorch_model-2.bin");
  write_text(folder.file("pytorch_model.bin.index.json"), R"({"weight_map":{"a":"../pytorch_model-2.bin"}})");
  CHECK(read() ==
        "the index places tensor 'a' in '../pytorch_model-2.bin', which is not the name of a file next to it");
}
