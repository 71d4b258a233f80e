#include "tests/support/sink_testing.h"

#include "pipeline/core/byte_order.h"
#include "pipeline/io/io.h"
#include "tests/support/catch.h"

namespace ggufmill {

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

GgufBuilder sample_model() {
  GgufBuilder builder;
  builder.metadata = every_metadata_type();
  builder.add_tensor("a", {5}, "I8", 1).add_tensor("b", {256, 3}, "Q4_K", 2).add_tensor("c", {7}, "F64", 3);
  return builder.add_tensor("d", {0, 4}, "F32").add_tensor("e", {32, 1, 2}, "Q8_0", 4);
}

Model model_of(const GgufBuilder& builder, const TempDir& folder) {
  builder.write(folder.file("m.gguf"));
  auto model = read_gguf(folder.file("m.gguf"));
  REQUIRE(model);
  return std::move(model.value());
}

std::vector<OutputFile> shards_of(const Model& model, const std::string& key, const std::string& value) {
  auto files = gguf_sink().layout(model, options_node("out/m.gguf", key, value));
  REQUIRE(files);
  return std::move(files.value());
}

}  // namespace ggufmill
