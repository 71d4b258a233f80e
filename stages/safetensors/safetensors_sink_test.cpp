// Tests the layout of files.

#include <fmt/format.h>

#include "stages/safetensors/header_reader.h"
#include "stages/safetensors/safetensors.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Model model_of(const std::vector<std::tuple<const char*, std::vector<std::uint64_t>, const char*>>& tensors) {
  Model model;
  for (const auto& [name, dims, type] : tensors) {
    Tensor& tensor = model.tensors.emplace_back(bare_tensor(name, dims));
    set_source(tensor, tensor.shape(), type);
    tensor.type = &tensor.source_type();
  }
  return model;
}

std::vector<OutputFile> files_of(const Model& model, std::uint64_t shard_size = 5'000'000'000) {
  const auto sink = make_safetensors_sink({"out", shard_size}).value();
  auto files = sink->layout(model);
  if (!files) FAIL(render(files.error()));
  return std::move(files).value();
}

std::string tensors_of(const Model& model, const OutputFile& file) {
  std::string text = file.path + ":";
  for (const Placement& placement : file.tensors)
    text += fmt::format(" {}@{}", model.tensors[placement.tensor].name, placement.offset - file.header.size());
  return text;
}

std::string adapted(const Model& model, const TypeInfo* type) {
  const auto result = make_safetensors_sink({"out", 1000, type}).value()->adapt(model);
  if (!result) return result.error().what + "; " + result.error().help;
  std::string text;
  for (const Tensor& tensor : result.value().tensors) text += fmt::format("{} ", tensor.type->name);
  return text;
}

}  // namespace

TEST_CASE("a written file reads back as the same tensors, aligned, with the row length last") {
  const Model model =
      model_of({{"b", {3, 2, 2}, "BF16"}, {"a \"quoted\"", {5}, "U8"}, {"d", {2}, "F64"}, {"none", {7, 0}, "F32"}});
  const std::vector<OutputFile> files = files_of(model);
  REQUIRE(files.size() == 1);
  CHECK(tensors_of(model, files[0]) == "out/model.safetensors: d@0 none@16 b@16 a \"quoted\"@40");
  CHECK(files[0].header.size() % 8 == 0);
  CHECK(files[0].header.substr(8).starts_with(
      R"({"__metadata__":{"format":"pt"},"d":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
      R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]},"b":{"dtype":"BF16","shape":[2,2,3],)"));
  const TempDir folder;
  write_text(folder.file("m.safetensors"), files[0].header + std::string(files[0].bytes - files[0].header.size(), 'x'));
  const auto read = read_safetensors(folder.file("m.safetensors"));
  if (!read) FAIL(render(read.error()));
  REQUIRE(read.value().tensors.size() == 4);
  CHECK(read.value().tensors[1].name == "b");
  CHECK(read.value().tensors[1].values->shape == model.tensors[0].shape());
  CHECK(read.value().files[0].metadata[0].second == "pt");
}

TEST_CASE("files are split before they get too large, and large tensors get their own") {
  const Model model =
      model_of({{"a", {40}, "U8"}, {"b", {60}, "U8"}, {"c", {300}, "U8"}, {"d", {30}, "U8"}, {"e", {71}, "U8"}});
  const std::vector<OutputFile> files = files_of(model, 100);
  REQUIRE(files.size() == 5);
  CHECK(tensors_of(model, files[0]) == "out/model-00001-of-00004.safetensors: c@0");
  CHECK(tensors_of(model, files[1]) == "out/model-00002-of-00004.safetensors: a@0 b@40");
  CHECK(tensors_of(model, files[2]) == "out/model-00003-of-00004.safetensors: d@0");
  CHECK(tensors_of(model, files[3]) == "out/model-00004-of-00004.safetensors: e@0");
  CHECK(files[4].path == "out/model.safetensors.index.json");
  CHECK(files[4].tensors.empty());
  CHECK(files[4].header == R"({
  "metadata": {
    "total_size": 501
  },
  "weight_map": {
    "a": "model-00002-of-00004.safetensors",
    "b": "model-00002-of-00004.safetensors",
    "c": "model-00001-of-00004.safetensors",
    "d": "model-00003-of-00004.safetensors",
    "e": "model-00004-of-00004.safetensors"
  }
}
)");
}

TEST_CASE("floats and quantized tensors become the chosen type, and integers are unchanged") {
  const Model model = model_of({{"a", {32}, "F32"}, {"b", {32}, "Q8_0"}, {"c", {32}, "I32"}, {"d", {32}, "F8_E4M3"}});
  CHECK(adapted(model, &type_named("BF16")) == "BF16 BF16 I32 BF16 ");
  CHECK(adapted(model, nullptr) ==
        "safetensors does not support Q8_0, the type of tensor 'b'; choose a type to decode to, such as "
        "dtype: bf16");
  CHECK(adapted(model_of({{"a", {32}, "F16"}, {"d", {32}, "F8_E4M3"}, {"e", {32}, "BOOL"}}), nullptr) ==
        "F16 F8_E4M3 BOOL ");
  Model quantized = model_of({{"a", {32}, "F32"}, {"b", {32}, "F32"}});
  for (Tensor& tensor : quantized.tensors) tensor.type = &type_named("Q8_0");
  CHECK(adapted(quantized, &type_named("BF16")) ==
        "safetensors does not support Q8_0, the type of tensor 'a' (and 1 more); remove the stage that quantizes, or "
        "write GGUF");
}

TEST_CASE("names that the format does not allow are refused") {
  const auto problem = [](const Model& model) {
    return make_safetensors_sink({"out"}).value()->layout(model).error().what;
  };
  CHECK(problem(model_of({{"a", {1}, "U8"}, {"a", {1}, "U8"}})) == "two tensors would be named 'a'");
  CHECK(problem(model_of({{"__metadata__", {1}, "U8"}})) ==
        "a tensor is named '__metadata__', which is reserved in safetensors files");
}
