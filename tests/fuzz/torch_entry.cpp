#include <fmt/format.h>

#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/torch_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/torch_builder.h"

namespace ggufmill {
namespace {

std::string check_places(const Expression& values, const std::string& path) {
  if (const Extent* const extent = values.as_extent()) {
    const Extent& data = *extent;
    if (data.source->path != path) return "tensor of another file";
    if (data.offset > data.source->bytes || data.bytes > data.source->bytes - data.offset)
      return "tensor outside the file";
    return values.bytes() == data.bytes ? "" : "tensor of a wrong size";
  }
  for (const ExpressionRef& input : values.inputs)
    if (std::string problem = check_places(*input, path); !problem.empty()) return problem;
  return {};
}

std::string floats(std::size_t count) { return std::string(4 * count, 'f'); }

}  // namespace

std::string fuzz_torch(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto opened = open_source(file.path());
  if (!opened) return file.problem_of(opened.error());
  const auto tensors = huggingface::read_torch_file(opened.value());
  if (!tensors) return file.problem_of(tensors.error());
  for (const CheckpointTensor& tensor : tensors.value())
    if (std::string problem = check_places(*tensor.values, file.path()); !problem.empty()) return problem;
  return {};
}

std::vector<std::string> torch_seeds() {
  const std::vector<TorchTensor> tensors = {{"model.embed_tokens.weight", "BFloat16Storage", {3, 4}, floats(6)},
                                            {"lm_head.weight", "BFloat16Storage", {3, 4}, "", "0"},
                                            {"turned", "FloatStorage", {2, 3}, floats(6), "", 0, {1, 2}},
                                            {"cut", "FloatStorage", {2, 2}, floats(12), "", 5, {4, 1}},
                                            {"scalar", "LongStorage", {}, "12345678"},
                                            {"none", "IntStorage", {0, 5}, ""},
                                            {"small", "float8_e4m3fn", {2}, "ab"},
                                            {"parameter", "HalfStorage", {2}, "abcd", "", 0, {}, true}};
  const std::string good = torch_file(tensors), pickle = torch_pickle(tensors);
  return {good,
          torch_file(tensors, {.protocol = 4}),
          torch_file(tensors, {.before_1_6 = true}),
          torch_file(tensors, {.protocol = 5, .before_1_6 = true}),
          torch_file({tensors[2]}, {.byte_order = "big"}),
          torch_file({tensors[3]}, {.byte_order = ""}),
          zip_file({{"x/data.pkl", torch_pickle({tensors[0]})}, {"x/data/0", floats(6)}}, true),
          zip_of_pickle(PickleBuilder(2).name("os", "system").text("true").raw("\x85R").stop()),
          zip_of_pickle(PickleBuilder(4)
                            .raw("](")
                            .text("a")
                            .raw("\x8a\x09"
                                 "123456789eGabcdefgh\x88\x89N\x87"
                                 "a0")
                            .stop()),
          zip_of_pickle("\x80\2" + std::string(1000, '(')),
          zip_file({{"a", "b", 1, 8, 3, 7}}),
          good.substr(0, good.size() / 2),
          pickle,
          ""};
}

}  // namespace ggufmill
