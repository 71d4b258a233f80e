#include "tests/random/random_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "pipeline/core/byte_order.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/arrays/npy_header.h"
#include "stages/gguf/format.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/safetensors_builder.h"

namespace ggufmill::testing {
namespace {

using Dims = std::vector<std::uint64_t>;

Dims slowest_first(Dims dims) {
  std::ranges::reverse(dims);
  return dims;
}

// Writes one file, or several with the names and keys of llama-gguf-split. Returns the path of the first.
std::string write_gguf(Random& random, const RandomModel& model, const std::string& folder) {
  const std::size_t tensors = model.tensors.size();
  const std::size_t files = random.percent(70) ? 1 : random.from(2, std::min<std::size_t>(tensors, 5));
  for (std::size_t f = 0; f < files; ++f) {
    GgufBuilder file;
    file.version = static_cast<std::uint32_t>(random.percent(80) ? 3 : 2);
    file.big_endian = file.version == 3 && random.percent(15);
    if (f == 0)
      file.metadata = {{"general.architecture", metadata_string("llama")},
                       {"general.name", metadata_string(std::string(random.from(1, 300), 'm'))},
                       {"llama.block_count", metadata_unsigned(MetadataType::kUint32, model.layers)}};
    if (files > 1) {
      file.metadata.push_back({"split.no", metadata_unsigned(MetadataType::kUint16, f)});
      file.metadata.push_back({"split.count", metadata_unsigned(MetadataType::kUint16, files)});
      file.metadata.push_back({"split.tensors.count", metadata_unsigned(MetadataType::kInt32, tensors)});
    }
    if (random.percent(20)) file.set_alignment(64);
    for (std::size_t t = tensors * f / files; t < tensors * (f + 1) / files; ++t)
      file.tensors.push_back(as_gguf(model.tensors[t]));
    file.write(files == 1 ? folder + "/m.gguf" : gguf::shard_path(folder + "/m", f, files));
  }
  return files == 1 ? folder + "/m.gguf" : gguf::shard_path(folder + "/m", 0, files);
}

std::string write_safetensors(Random& random, const RandomModel& model, const std::string& folder) {
  std::vector<SafetensorsTensor> tensors;
  for (const ModelTensor& tensor : model.tensors)
    tensors.push_back({tensor.name, std::string(tensor.type->name), slowest_first(tensor.dims), *tensor.bytes});
  const std::string path = folder + "/model.safetensors";
  if (random.percent(60)) {
    write_text(path, safetensors_bytes(tensors));
    return path;
  }
  const std::size_t half = random.from(1, tensors.size() - 1);
  std::vector<std::pair<std::string, std::string>> index;
  for (std::size_t f = 0; f < 2; ++f) {
    const std::string name = fmt::format("model-0000{}-of-00002.safetensors", f + 1);
    const std::vector<SafetensorsTensor> part(
        tensors.begin() + (f == 0 ? 0 : static_cast<std::ptrdiff_t>(half)),
        f == 0 ? tensors.begin() + static_cast<std::ptrdiff_t>(half) : tensors.end());
    for (const SafetensorsTensor& tensor : part) index.emplace_back(tensor.name, name);
    write_text(folder + "/" + name, safetensors_bytes(part));
  }
  write_text(path + ".index.json", safetensors_index(index));
  return folder;
}

// Returns the bytes of a matrix as a file with the other order of dimensions has them.
std::string transposed(const ModelTensor& tensor) {
  const std::size_t width = tensor.type->block_bytes, columns = tensor.dims[0], rows = tensor.dims[1];
  std::string bytes;
  for (std::size_t column = 0; column < columns; ++column)
    for (std::size_t row = 0; row < rows; ++row) bytes.append(*tensor.bytes, (row * columns + column) * width, width);
  return bytes;
}

std::string write_array(Random& random, const ModelTensor& tensor, const std::string& folder, std::size_t index) {
  const std::string name = fmt::format("{}.data", index);
  if (arrays::has_npy_type(*tensor.type) && random.percent(60)) {
    std::string header = arrays::npy_header(*tensor.type, slowest_first(tensor.dims));
    const bool fortran_order = tensor.dims.size() == 2 && random.percent(30);
    if (fortran_order) header.replace(header.find("False"), 5, "True ");
    write_text(folder + "/" + name, header + (fortran_order ? transposed(tensor) : *tensor.bytes));
    return fmt::format("  - {{name: {}, npy: {}}}\n", tensor.name, name);
  }
  std::string bytes = *tensor.bytes;
  const bool big = random.percent(20);
  const std::size_t offset = random.percent(50) ? 0 : random.below(100);
  if (big) swap_words(*tensor.type, tensor.columns(), std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  write_text(folder + "/" + name, std::string(offset, 'x') + bytes);
  return fmt::format("  - {{name: {}, raw: {}, type: {}, shape: [{}], offset: {}, byte_order: {}}}\n", tensor.name,
                     name, tensor.type->name, fmt::join(slowest_first(tensor.dims), ", "), offset,
                     big ? "big" : "little");
}

std::string write_arrays(Random& random, const RandomModel& model, const std::string& folder) {
  std::string text = fmt::format(
      "metadata: {{general.architecture: llama, llama.block_count: {{type: uint32, value: {}}}}}\ntensors:\n",
      model.layers);
  for (std::size_t t = 0; t < model.tensors.size(); ++t) text += write_array(random, model.tensors[t], folder, t);
  write_text(folder + "/arrays.yaml", text);
  return folder + "/arrays.yaml";
}

}  // namespace

RandomSource random_source(Random& random, const Kernels& kernels, const std::string& folder) {
  const std::uint64_t kind = random.below(100);
  if (kind < 27) return random_checkpoint(random, kernels, folder);
  if (kind < 30) return random_adapter(random, kernels, folder);
  RandomSource source;
  const RandomModel model = random_model(random, kernels, kind < 65 ? ModelTypes::kGguf : ModelTypes::kFloats);
  if (kind < 65)
    source.text = fmt::format("{{gguf: '{}'}}", write_gguf(random, model, folder));
  else if (kind < 85)
    source.text =
        fmt::format("{{safetensors: {{path: '{}', architecture: llama}}}}", write_safetensors(random, model, folder));
  else
    source.text = fmt::format("{{arrays: '{}'}}", write_arrays(random, model, folder));
  source.tensors = model.tensors;
  source.layers = model.layers;
  for (const ModelTensor& tensor : model.tensors) source.has_quantized |= tensor.type->is_quantized();
  describe(random, kernels, model.tensors, folder, source);
  return source;
}

}  // namespace ggufmill::testing
