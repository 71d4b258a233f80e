#include "tests/fuzz/gguf_entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "stages/gguf/gguf.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hostile_gguf.h"

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

// splitmix64 (Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(next() % end); }

 private:
  std::uint64_t state_;
};

// Numbers near which readers break: around powers of two, and the wraps of 64-bit products.
std::uint64_t awkward_number(Random& random) {
  const std::uint64_t power = std::uint64_t{1} << random.below(64);
  switch (random.below(5)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return ~std::uint64_t{0} - random.below(64);
    case 3:
      return ~std::uint64_t{0} / (1 + random.below(64)) + random.below(3);
    default:
      return random.below(64);
  }
}

void damage_once(std::string& bytes, Random& random) {
  const std::size_t at = random.below(bytes.size());
  switch (random.below(6)) {
    case 0:
      bytes[at] = static_cast<char>(random.next());
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, 1 + random.below(16));
      break;
    case 4:
      bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(64)));
      break;
    default: {
      const std::uint64_t number = awkward_number(random);
      const std::size_t width = std::min<std::size_t>(random.below(2) ? 4 : 8, bytes.size() - at);
      bytes.replace(at, width, reinterpret_cast<const char*>(&number), width);
    }
  }
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
  if (!model) return check_error(model.error(), file.path());
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

std::string damaged(std::string bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t times = 1 + random.below(4); times > 0 && !bytes.empty(); --times) damage_once(bytes, random);
  return bytes;
}

}  // namespace ggufmill
