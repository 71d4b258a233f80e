#include "tests/golden/workplace.h"

#include <map>
#include <stdexcept>

#include "stages/gguf/gguf.h"

namespace ggufmill::golden {

ModelFile read_model(const std::string& path) {
  const auto opened = read_gguf(path);
  if (!opened) throw std::runtime_error(render(opened.error()));
  const Model& model = opened.value();
  ModelFile result;
  result.metadata = model.metadata.entries();
  const MetadataValue* alignment = model.metadata.find("general.alignment");
  const std::uint64_t multiple = alignment ? as_unsigned(*alignment).value_or(0) : 32;
  std::map<SourceRef, std::string> files;
  for (const SourceRef& file : model.files) files[file] = read_text(file->path);
  for (const Tensor& tensor : model.tensors) {
    const Extent& data = *tensor.expression->as_extent();
    result.tensors[tensor.name] = {std::string(tensor.source_type().name),
                                   files[data.source].substr(data.offset, data.bytes)};
    result.misaligned += data.offset % multiple == 0 ? 0 : 1;
  }
  return result;
}

}  // namespace ggufmill::golden
