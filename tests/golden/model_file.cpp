#include "tests/golden/model_file.h"

#include <stdexcept>

#include "stages/gguf/gguf.h"
#include "tests/support/files.h"

namespace ggufmill::golden {

ModelFile read_model(const std::string& path) {
  const auto opened = read_gguf(path);
  if (!opened) throw std::runtime_error(render(opened.error()));
  const Model& model = opened.value();
  ModelFile result;
  result.metadata = model.metadata.entries();
  const MetadataValue* alignment = model.metadata.find("general.alignment");
  const std::uint64_t multiple = alignment ? as_unsigned(*alignment).value_or(0) : 32;
  std::vector<std::string> files;
  for (const SourceFile& file : model.files) files.push_back(read_text(file.path));
  for (const Tensor& tensor : model.tensors) {
    const TensorSource& source = tensor.source;
    result.tensors[tensor.name] = {std::string(source.type->name),
                                   files[source.file].substr(source.offset, source.bytes)};
    result.misaligned += source.offset % multiple == 0 ? 0 : 1;
  }
  return result;
}

}  // namespace ggufmill::golden
