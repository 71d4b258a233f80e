#include "tests/fuzz/gguf_entry.h"

#include "stages/gguf/gguf.h"
#include "tests/fuzz/memory_file.h"

namespace ggufmill {
namespace {

std::string check_error(const Error& error, const std::string& path) {
  const bool whole = error.code == ExitCode::kBadInput && error.where == path && !error.what.empty() &&
                     error.what.find('\n') == std::string::npos;
  return whole ? "" : "not a clear error: " + render(error);
}

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

}  // namespace

std::string fuzz_gguf(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto model = read_gguf(file.path());
  if (!model) return check_error(model.error(), file.path());
  if (std::string problem = check_places(model.value()); !problem.empty()) return problem;
  return check_written(model.value());
}

}  // namespace ggufmill
