#include "tests/support/synth_model.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <boost/json.hpp>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "tests/support/synth_file.h"

namespace ggufmill::synth {
namespace {

static_assert(std::endian::native == std::endian::little);

// ---- the primitives of GGUF ----

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Writes the length as 64 bits, then the bytes.
void put_string(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

constexpr std::uint32_t kStringId = 8;
constexpr std::uint32_t kArrayId = 9;
constexpr std::string_view kArrayPrefix = "array:";

template <class T>
void put_number(std::string& out, const boost::json::value& value) {
  put(out, static_cast<T>(value.to_number<T>()));
}

void put_float32(std::string& out, const boost::json::value& value) {
  put(out, static_cast<float>(value.to_number<double>()));
}

void put_bool(std::string& out, const boost::json::value& value) { put(out, std::uint8_t{value.as_bool()}); }

void put_text(std::string& out, const boost::json::value& value) {
  put_string(out, std::string_view(value.as_string()));
}

struct Kind {
  std::string_view name;
  std::uint32_t id;
  void (*put_value)(std::string&, const boost::json::value&);
};

constexpr Kind kKinds[] = {
    {"uint8", 0, put_number<std::uint8_t>},
    {"int8", 1, put_number<std::int8_t>},
    {"uint16", 2, put_number<std::uint16_t>},
    {"int16", 3, put_number<std::int16_t>},
    {"uint32", 4, put_number<std::uint32_t>},
    {"int32", 5, put_number<std::int32_t>},
    {"float32", 6, put_float32},
    {"bool", 7, put_bool},
    {"string", kStringId, put_text},
    {"uint64", 10, put_number<std::uint64_t>},
    {"int64", 11, put_number<std::int64_t>},
    {"float64", 12, put_number<double>},
};

const Kind& kind_named(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  throw std::invalid_argument("unknown metadata type '" + std::string(name) + "'");
}

void put_array_head(std::string& out, std::uint32_t item_id, std::uint64_t count) {
  put(out, kArrayId);
  put(out, item_id);
  put(out, count);
}

void put_tokens(std::string& out, std::uint64_t count) {
  put_array_head(out, kStringId, count);
  for (std::uint64_t i = 0; i < count; ++i) put_string(out, "<tok_" + std::to_string(i) + ">");
}

void put_array(std::string& out, const Kind& item, const boost::json::array& values) {
  put_array_head(out, item.id, values.size());
  for (const boost::json::value& value : values) item.put_value(out, value);
}

// Writes the magic, version 3 and both counts.
void put_magic(std::string& out, std::uint64_t tensors, std::uint64_t metadata) {
  out += "GGUF";
  put(out, std::uint32_t{3});
  put(out, tensors);
  put(out, metadata);
}

// Writes one key, its type and its value.
void put_metadata(std::string& out, const MetadataSpec& entry) {
  put_string(out, entry.key);
  const std::string_view kind = entry.kind;
  if (kind == "tokens") return put_tokens(out, entry.value.to_number<std::uint64_t>());
  if (kind.starts_with(kArrayPrefix)) {
    return put_array(out, kind_named(kind.substr(kArrayPrefix.size())), entry.value.as_array());
  }
  put(out, kind_named(kind).id);
  kind_named(kind).put_value(out, entry.value);
}

// Writes one tensor description; `offset` is relative to the data section.
void put_tensor(std::string& out, std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type_id,
                std::uint64_t offset) {
  put_string(out, name);
  put(out, static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) put(out, dim);
  put(out, type_id);
  put(out, offset);
}

// ---- models ----

constexpr std::uint64_t kPiece =
    1 << 18;  // weights that a thread generates and writes at a time: they fit the second-level cache

std::uint32_t type_id(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return 0;
    case WeightType::kF16:
      return 1;
    case WeightType::kBf16:
      return 30;
  }
  return 0;
}

std::span<const std::byte> encode(WeightType type, std::span<const float> weights, std::vector<std::uint16_t>& halves) {
  if (type == WeightType::kF32) return std::as_bytes(weights);
  halves.resize(weights.size());
  if (type == WeightType::kF16)
    to_f16(weights, halves);
  else
    to_bf16(weights, halves);
  return std::as_bytes(std::span(halves));
}

struct Piece {
  const TensorSpec* tensor;
  std::uint64_t start, count;
  std::uint64_t offset;  // in the file
};

std::vector<Piece> pieces_of(const ModelSpec& spec, std::uint64_t data_offset) {
  std::vector<Piece> pieces;
  for (const TensorSpec& tensor : spec.tensors) {
    const std::uint64_t elements = tensor.elements();
    const std::uint64_t width = tensor.type == WeightType::kF32 ? 4 : 2;
    for (std::uint64_t start = 0; start < elements; start += kPiece) {
      pieces.push_back({&tensor, start, std::min(kPiece, elements - start), data_offset + start * width});
    }
    data_offset += padded(tensor.bytes(), spec.alignment);
  }
  return pieces;
}

// Runs one worker: takes pieces until there are no more.
void write_pieces(const std::vector<Piece>& pieces, std::atomic<std::size_t>& next, OutputFile& file) {
  std::vector<float> weights;
  std::vector<std::uint16_t> halves;
  for (std::size_t i = next++; i < pieces.size(); i = next++) {
    const Piece& piece = pieces[i];
    weights.resize(piece.count);
    fill(piece.tensor->distribution, piece.tensor->seed, piece.start, weights);
    file.write_at(piece.offset, encode(piece.tensor->type, weights, halves));
  }
}

void write_weights(const std::vector<Piece>& pieces, OutputFile& file) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::future<void>> workers;
  const std::size_t count = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  for (std::size_t i = 0; i < std::min(count, pieces.size()); ++i) {
    workers.push_back(std::async(std::launch::async, [&] { write_pieces(pieces, next, file); }));
  }
  for (auto& worker : workers) worker.get();
}

struct Header {
  std::string bytes;            // padded
  std::uint64_t data_size = 0;  // of the section after it
};

Header header_of(const ModelSpec& spec) {
  Header header;
  put_magic(header.bytes, spec.tensors.size(), spec.metadata.size());
  for (const MetadataSpec& entry : spec.metadata) put_metadata(header.bytes, entry);
  for (const TensorSpec& tensor : spec.tensors) {
    put_tensor(header.bytes, tensor.name, tensor.dims, type_id(tensor.type), header.data_size);
    header.data_size += padded(tensor.bytes(), spec.alignment);
  }
  header.bytes.resize(padded(header.bytes.size(), spec.alignment));
  return header;
}

// ---- importance ----

constexpr std::string_view kDataset = "calibration.txt";
constexpr std::uint32_t kChunks = 100;

struct Entry {
  const TensorSpec* tensor;
  std::uint64_t seed;
  std::uint64_t experts() const { return tensor->dims.size() > 2 ? tensor->dims[2] : 1; }
  // Returns one sum for each column and expert.
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

// Returns a legacy file: count, then name, calls, number of sums and sums of each entry; then chunks and the data set.
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

// Collects the tensors of a GGUF importance file: descriptions and data are kept separately.
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
  constexpr float kCount = 64;  // number of tokens
  Tensors tensors;
  for (const Entry& entry : entries) {
    const std::uint64_t experts = entry.experts();
    tensors.add(entry.tensor->name + ".in_sum2", {entry.tensor->dims[0], experts}, entry.sums(kCount));
    tensors.add(entry.tensor->name + ".counts", {1, experts}, std::vector<float>(experts, kCount));
  }
  return tensors.file();
}

}  // namespace

void write_model(const ModelSpec& spec, const std::string& path, bool sparse) {
  const Header header = header_of(spec);
  OutputFile file(path);
  file.resize(header.bytes.size() + header.data_size);
  file.write_at(0, std::as_bytes(std::span(header.bytes)));
  if (!sparse) write_weights(pieces_of(spec, header.bytes.size()), file);
}

void write_imatrix(const ModelSpec& spec, std::uint64_t seed, const std::string& path) {
  const std::vector<Entry> entries = entries_of(spec, seed);
  const std::string bytes = path.ends_with(".dat") ? legacy_file(entries) : gguf_file(entries);
  OutputFile(path).write_at(0, std::as_bytes(std::span(bytes)));
}

}  // namespace ggufmill::synth
