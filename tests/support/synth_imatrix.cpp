// Importance files: what llama-imatrix would write after 100 chunks of a calibration text.
#include <fstream>
#include <stdexcept>

#include "tests/support/synth_bytes.h"
#include "tests/support/synth_file.h"

namespace ggufmill::synth {
namespace {

constexpr std::string_view kDataset = "calibration.txt";
constexpr std::uint32_t kChunks = 100;

struct Entry {
  const TensorSpec* tensor;
  std::uint64_t seed;
  std::uint64_t experts() const { return tensor->dims.size() > 2 ? tensor->dims[2] : 1; }
  // One sum a column and expert.
  std::vector<float> sums(float scale) const {
    std::vector<float> sums = importance(seed, tensor->dims[0] * experts());
    for (float& sum : sums) sum *= scale;
    return sums;
  }
};

std::vector<Entry> entries_of(const ModelSpec& spec, std::uint64_t seed) {
  std::vector<Entry> entries;
  for (const TensorSpec& tensor : spec.tensors) {
    if (tensor.dims.size() >= 2 && tensor.name.ends_with(".weight"))
      entries.push_back({&tensor, seed + entries.size()});
  }
  return entries;
}

void put_floats(std::string& out, const std::vector<float>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

void put_legacy_string(std::string& out, std::string_view text) {
  put(out, static_cast<std::int32_t>(text.size()));
  out += text;
}

// Legacy: count, then name, calls, number of sums and sums of each entry; then chunks and the data set.
std::string legacy_file(const std::vector<Entry>& entries) {
  constexpr std::int32_t kCalls = 4;
  std::string out;
  put(out, static_cast<std::int32_t>(entries.size()));
  for (const Entry& entry : entries) {
    const std::vector<float> sums = entry.sums(kCalls);
    put_legacy_string(out, entry.tensor->name);
    put(out, kCalls);
    put(out, static_cast<std::int32_t>(sums.size()));
    put_floats(out, sums);
  }
  put(out, std::int32_t{kChunks});
  put_legacy_string(out, kDataset);
  return out;
}

// Collects the tensors of a GGUF importance file: descriptions and data side by side.
class Tensors {
 public:
  void add(const std::string& name, const std::vector<std::uint64_t>& dims, const std::vector<float>& values) {
    put_tensor(descriptions_, name, dims, 0, data_.size());
    put_floats(data_, values);
    data_.resize(padded(data_.size(), 32));
    ++count_;
  }
  std::string file() const {
    const std::vector<MetadataSpec> metadata = {{"general.type", "string", "imatrix"},
                                                {"imatrix.datasets", "array:string", {kDataset}},
                                                {"imatrix.chunk_count", "uint32", kChunks},
                                                {"imatrix.chunk_size", "uint32", 512}};
    std::string out;
    put_magic(out, count_, metadata.size());
    for (const MetadataSpec& entry : metadata) put_metadata(out, entry);
    out += descriptions_;
    out.resize(padded(out.size(), 32));
    return out + data_;
  }

 private:
  std::string descriptions_, data_;
  std::uint64_t count_ = 0;
};

std::string gguf_file(const std::vector<Entry>& entries) {
  constexpr float kCount = 64;  // tokens seen
  Tensors tensors;
  for (const Entry& entry : entries) {
    const std::uint64_t experts = entry.experts();
    tensors.add(entry.tensor->name + ".in_sum2", {entry.tensor->dims[0], experts}, entry.sums(kCount));
    tensors.add(entry.tensor->name + ".counts", {1, experts}, std::vector<float>(experts, kCount));
  }
  return tensors.file();
}

}  // namespace

void write_imatrix(const ModelSpec& spec, std::uint64_t seed, const std::string& path) {
  const std::vector<Entry> entries = entries_of(spec, seed);
  const std::string bytes = path.ends_with(".dat") ? legacy_file(entries) : gguf_file(entries);
  OutputFile(path).write_at(0, std::as_bytes(std::span(bytes)));
}

}  // namespace ggufmill::synth
