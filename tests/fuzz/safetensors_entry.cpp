#include "tests/fuzz/fuzz.h"

#include "stages/safetensors/safetensors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/safetensors_builder.h"

namespace ggufmill {
namespace {

std::string check_places(const Checkpoint& checkpoint) {
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    const Extent& data = *tensor.values->as_extent();
    if (data.offset > data.source->bytes || data.bytes > data.source->bytes - data.offset)
      return "tensor outside the file";
    if (tensor.values->bytes() != data.bytes) return "tensor of a wrong size";
  }
  return {};
}

std::string check_same(const Model& before, const Checkpoint& after) {
  if (before.tensors.size() != after.tensors.size()) return "tensors lost";
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    const Tensor& a = before.tensors[i];
    const CheckpointTensor& b = after.tensors[i];
    if (a.name != b.name || a.expression->type != b.values->type || a.shape().dims != b.values->shape.dims)
      return "tensor changed";
  }
  return {};
}

std::string check_written(const std::string& path) {
  Model model = make_safetensors_source({path})->open().value();
  for (Tensor& tensor : model.tensors) tensor.type = &tensor.source_type();
  const auto files = make_safetensors_sink({"out", UINT64_MAX}).value()->layout(model);
  if (!files) return "cannot be written: " + render(files.error());
  const OutputFile& out = files.value()[0];
  const MemoryFile file(out.header, out.bytes);
  if (!file.good()) return {};  // too large for memory files
  const auto again = read_safetensors(file.path());
  if (!again) return "cannot be read back: " + render(again.error());
  return check_same(model, again.value());
}

}  // namespace

std::string fuzz_safetensors(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto checkpoint = read_safetensors(file.path());
  if (!checkpoint) return file.problem_of(checkpoint.error());
  if (std::string problem = check_places(checkpoint.value()); !problem.empty()) return problem;
  return check_written(file.path());
}

std::vector<std::string> safetensors_seeds() {
  const std::string good = safetensors_bytes({{"model.embed_tokens.weight", "BF16", {3, 4}, std::string(24, 'a')},
                                              {"scalar", "F64", {}, "12345678"},
                                              {"none", "I32", {0, 5}, ""},
                                              {"conv", "F8_E4M3", {1, 2, 3, 1, 2}, std::string(12, 'b')},
                                              {"packed", "F4", {2, 4}, "abcd"}},
                                             R"({"format":"pt","more":"\u00e9"})");
  return {good,
          safetensors_bytes({{"a", "U8", {1}, "x"}}),
          safetensors_file("{}"),
          safetensors_file(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"later":[{"x":null}]},)"
                           R"("b":{"data_offsets":[1,3],"shape":[2],"dtype":"I8"}})",
                           "abcd"),
          safetensors_file(
              R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,18446744073709551615]}})"),
          safetensors_file(R"({"__metadata__":{},"a":{"dtype":"C64","shape":[],"data_offsets":[0,8]}})", "12345678"),
          safetensors_file("{\"a\":" + std::string(1000, '[')),
          good.substr(0, good.size() / 2),
          "version https://git-lfs.github.com/spec/v1\n",
          ""};
}

}  // namespace ggufmill
