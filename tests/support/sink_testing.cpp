#include "tests/support/sink_testing.h"

#include "pipeline/core/byte_order.h"
#include "pipeline/io/io.h"
#include "tests/support/catch.h"

namespace ggufmill {

Result<std::vector<OutputFile>> lay_out(const Model& model, gguf::SinkOptions options) {
  BOOST_OUTCOME_TRY(const std::unique_ptr<Sink> sink, make_gguf_sink(std::move(options)));
  return sink->layout(model);
}

// Assembles a layout as the engine does if nothing is converted.
std::string assemble(const Model& model, const OutputFile& file) {
  std::string out = file.header;
  out.resize(file.bytes);
  for (const Placement& place : file.tensors) {
    const Extent& source = *model.tensors[place.tensor].expression->as_extent();
    const auto input = InputFile::open(source.source->path);
    const auto into = std::as_writable_bytes(std::span(out).subspan(place.offset, place.bytes));
    REQUIRE(input.value()->read(source.offset, into));
    const Tensor& tensor = model.tensors[place.tensor];
    if (source.big_endian) swap_words(tensor.source_type(), tensor.shape().columns(), into);
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

std::vector<OutputFile> shards_of(const Model& model, gguf::SinkOptions options) {
  options.path = "out/m.gguf";
  auto files = lay_out(model, std::move(options));
  REQUIRE(files);
  return std::move(files.value());
}

}  // namespace ggufmill
