#include <fmt/format.h>

#include "stages/ggml/ggml.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

namespace ggufmill {
namespace {

std::string number(std::uint32_t value) {
  std::string bytes;
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// Returns a model with four tokens and three tensors.
std::string small_model(const std::string& magic, std::uint32_t version) {
  std::string out = magic;
  if (magic != "lmgg") out += number(version);
  for (const std::uint32_t value : {4u, 32u, 256u, 4u, 1u, 8u, 1u}) out += number(value);
  for (int id = 0; id < 4; ++id) out += number(3) + "a b" + (magic == "lmgg" ? "" : number(0));
  for (const std::string& name : {std::string("tok_embeddings.weight"), std::string("layers.0.feed_forward.w1.weight"),
                                  std::string("norm.weight")}) {
    out += number(2) + number(static_cast<std::uint32_t>(name.size())) + number(1) + number(32) + number(4) + name;
    while (magic == "tjgg" && out.size() % 32 != 0) out += '\0';
    out.append(256, '\0');
  }
  return out;
}

}  // namespace

std::string fuzz_ggml(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto model = make_ggml_source({.file = file.path()})->open();
  if (!model) return file.problem_of(model.error());
  for (const Tensor& tensor : model.value().tensors) {
    const Extent* extent = tensor.expression->as_extent();
    if (!extent || extent->offset > bytes.size() || extent->bytes > bytes.size() - extent->offset)
      return fmt::format("tensor {} is not in the file", tensor.name);
  }
  return {};
}

std::vector<std::string> ggml_seeds() {
  return {small_model("lmgg", 1), small_model("fmgg", 1), small_model("tjgg", 1), small_model("tjgg", 3), "tjgg", ""};
}

}  // namespace ggufmill
