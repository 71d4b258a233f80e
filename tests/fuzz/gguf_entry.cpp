#include "tests/fuzz/fuzz.h"

#include "stages/gguf/gguf.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hostile_gguf.h"

namespace ggufmill {
namespace {

std::string check_places(const Model& model) {
  for (const Tensor& tensor : model.tensors) {
    const Extent& data = *tensor.expression->as_extent();
    if (data.offset > data.source->bytes || data.bytes > data.source->bytes - data.offset)
      return "tensor outside the file";
    if (tensor.shape().elements() / tensor.type->block_elements * tensor.type->block_bytes != tensor.source_bytes())
      return "tensor of a wrong size";
  }
  return "";
}

std::string check_same(const Model& before, const Model& after) {
  std::vector<const MetadataEntry*> entries;
  for (const MetadataEntry& entry : before.metadata.entries())
    if (!entry.key.starts_with("split.") || after.metadata.find(entry.key)) entries.push_back(&entry);
  if (entries.size() != after.metadata.entries().size()) return "metadata lost";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const MetadataEntry& entry = after.metadata.entries()[i];
    if (entry.key != entries[i]->key || !(entry.value == entries[i]->value)) return "metadata changed";
    if (describe(entry.value).empty()) return "metadata without words";
  }
  if (before.tensors.size() != after.tensors.size()) return "tensors lost";
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    const Tensor &a = before.tensors[i], &b = after.tensors[i];
    if (a.name != b.name || a.type != b.type || a.shape().dims != b.shape().dims) return "tensor changed";
  }
  return "";
}

std::string check_written(const Model& model) {
  const auto files = make_gguf_sink({.path = "out.gguf"}).value()->layout(model);
  if (!files) return "cannot be written: " + render(files.error());
  const OutputFile& out = files.value()[0];
  const MemoryFile file(out.header, out.bytes);
  if (!file.good()) return "";  // too large for memory files
  const auto again = read_gguf(file.path());
  if (!again) return "cannot be read back: " + render(again.error());
  return check_same(model, again.value());
}

GgufBuilder good_file(std::uint32_t version, bool big_endian) {
  GgufBuilder builder;
  builder.version = version;
  builder.big_endian = big_endian;
  builder.metadata = every_metadata_type();
  builder.add_tensor("token_embd.weight", {256, 2}, "Q4_K").add_tensor("blk.0.attn_norm.weight", {8});
  return builder.add_tensor("empty", {0, 4}).add_tensor("blk.0.ffn_down.weight", {32, 2, 2, 1}, "Q8_0");
}

}  // namespace

std::string fuzz_gguf(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto model = read_gguf(file.path());
  if (!model) return file.problem_of(model.error());
  if (std::string problem = check_places(model.value()); !problem.empty()) return problem;
  return check_written(model.value());
}

std::vector<std::string> gguf_seeds() {
  std::vector<std::string> seeds;
  for (const std::uint32_t version : {1u, 2u, 3u})
    for (const bool big_endian : {false, true}) seeds.push_back(good_file(version, big_endian).build());
  seeds.push_back(good_file(3, false).set_alignment(64).build());
  for (HostileFile& file : hostile_files())
    if (file.bytes.size() < 4096) seeds.push_back(std::move(file.bytes));
  return seeds;
}

}  // namespace ggufmill
