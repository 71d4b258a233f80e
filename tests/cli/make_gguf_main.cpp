// ggufmill-make-gguf OUT.gguf ITEM...: writes small GGUF files for the command-line cases.
//   tiny                        metadata and tensors of a Llama with two layers
//   meta KEY TYPE VALUE         metadata: an integer type, float32, bool or string; string[] with words between commas
//   tensor NAME TYPE COLSxROWS  a tensor: F32 and BF16 contain a ramp, other types zero bytes
//   set NAME INDEX VALUE        one value of an F32 tensor
//   version N | big-endian | alignment N
// ggufmill-make-gguf hostile FOLDER: writes the files of hostile_files(), named by number.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "pipeline/core/types.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"

namespace ggufmill {
namespace {

using Words = std::vector<std::string>;

const std::string& next(const Words& words, std::size_t& at) {
  if (at >= words.size()) throw std::runtime_error("an argument is missing at the end");
  return words[at++];
}

Words split(const std::string& text, char separator) {
  Words parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

MetadataValue value_of(const std::string& type, const std::string& text) {
  if (type.ends_with("[]")) {
    const std::string element = type.substr(0, type.size() - 2);
    std::vector<MetadataValue> items;
    for (const std::string& part : split(text, ',')) items.push_back(value_of(element, part));
    return metadata_array(metadata_type_named(element).value(), items);
  }
  const MetadataType known = metadata_type_named(type).value();
  if (known == MetadataType::kString) return metadata_string(text);
  if (known == MetadataType::kBool) return metadata_bool(text == "true");
  if (known == MetadataType::kFloat32) return metadata_float(known, std::stod(text));
  return metadata_unsigned(known, static_cast<std::uint64_t>(std::stoll(text)));
}

// Returns multiples of 1/64 between -1 and 1, which BF16 represents exactly.
float ramp(std::size_t index) { return static_cast<float>(static_cast<int>(index * 37 % 127) - 63) / 64; }

void fill(GgufBuilder::TensorSpec& tensor) {
  const std::size_t width = tensor.type == "F32" ? 4 : tensor.type == "BF16" ? 2 : 0;
  if (width == 0) tensor.data.assign(tensor.data.size(), '\0');
  for (std::size_t i = 0; width != 0 && i < tensor.data.size() / width; ++i) {
    const float value = ramp(i);
    std::memcpy(&tensor.data[i * width], reinterpret_cast<const char*>(&value) + sizeof value - width, width);
  }
}

void add_tensor(GgufBuilder& file, const std::string& name, const std::string& type, const std::string& shape) {
  std::vector<std::uint64_t> dims;
  for (const std::string& dim : split(shape, 'x')) dims.push_back(std::stoull(dim));
  file.add_tensor(name, dims, type);
  fill(file.tensors.back());
}

void set_value(GgufBuilder& file, const std::string& name, std::size_t index, float value) {
  for (GgufBuilder::TensorSpec& tensor : file.tensors)
    if (tensor.name == name && (index + 1) * sizeof value <= tensor.data.size())
      std::memcpy(&tensor.data[index * sizeof value], &value, sizeof value);
}

void add_tiny(GgufBuilder& file) {
  file.metadata.push_back({"general.architecture", metadata_string("llama")});
  file.metadata.push_back({"general.name", metadata_string("tiny")});
  file.metadata.push_back({"llama.block_count", metadata_unsigned(MetadataType::kUint32, 2)});
  add_tensor(file, "token_embd.weight", "F32", "256x8");
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add_tensor(file, layer + "attn_norm.weight", "F32", "256");
    for (const char* name : {"attn_q.weight", "attn_v.weight", "ffn_down.weight"})
      add_tensor(file, layer + name, "F32", "256x4");
  }
  add_tensor(file, "output_norm.weight", "F32", "256");
  add_tensor(file, "output.weight", "F32", "256x8");
}

void add_item(GgufBuilder& file, const Words& words, std::size_t& at) {
  const std::string& item = next(words, at);
  const auto word = [&]() -> const std::string& { return next(words, at); };
  if (item == "tiny") return add_tiny(file);
  if (item == "big-endian") return void(file.big_endian = true);
  if (item == "version") return void(file.version = static_cast<std::uint32_t>(std::stoul(word())));
  if (item == "alignment") return void(file.set_alignment(static_cast<std::uint32_t>(std::stoul(word()))));
  const std::string& first = word();
  const std::string& second = word();
  const std::string& third = word();
  if (item == "meta") return file.metadata.push_back({first, value_of(second, third)});
  if (item == "tensor") return add_tensor(file, first, second, third);
  if (item == "set") return set_value(file, first, std::stoul(second), std::stof(third));
  throw std::runtime_error("unknown item '" + item + "'");
}

void write_hostile(const std::string& folder) {
  fs::create_directories(folder);
  std::size_t number = 0;
  for (const HostileFile& file : hostile_files()) {
    char name[32];
    std::snprintf(name, sizeof name, "/%03zu.gguf", ++number);
    write_text(folder + name, file.bytes);
  }
}

void run(const Words& words) {
  std::size_t at = 0;
  const std::string& path = next(words, at);
  if (path == "hostile") return write_hostile(next(words, at));
  GgufBuilder file;
  while (at < words.size()) add_item(file, words, at);
  file.write(path);
}

}  // namespace
}  // namespace ggufmill

int main(int count, char** arguments) try {
  ggufmill::run({arguments + 1, arguments + count});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ggufmill-make-gguf: %s\n", error.what());
  return 1;
}
