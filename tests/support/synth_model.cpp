#include "tests/support/synth_model.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <future>
#include <thread>

#include "tests/support/synth_bytes.h"
#include "tests/support/synth_file.h"

namespace ggufmill::synth {
namespace {

constexpr std::uint64_t kPiece =
    1 << 18;  // weights made and written at once by a thread: they fit the second-level cache

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

// Rounds to the nearest, ties to even. Finite values only, and below 65520, as all synthetic ones are.
inline std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // Below 2^-14 the result is subnormal: adding 1/2 leaves the 10 bits, rounded, at the bottom of the sum.
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  const std::uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  return static_cast<std::uint16_t>(sign | (magnitude < 113u << 23 ? subnormal : normal));
}

inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <std::uint16_t (*Convert)(float)>
std::span<const std::byte> narrow(std::span<const float> weights, std::vector<std::uint16_t>& halves) {
  halves.resize(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) halves[i] = Convert(weights[i]);
  return std::as_bytes(std::span(halves));
}

std::span<const std::byte> encode(WeightType type, std::span<const float> weights, std::vector<std::uint16_t>& halves) {
  switch (type) {
    case WeightType::kF16:
      return narrow<to_f16>(weights, halves);
    case WeightType::kBf16:
      return narrow<to_bf16>(weights, halves);
    case WeightType::kF32:
      break;
  }
  return std::as_bytes(weights);
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

// One worker: takes pieces until none is left.
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

}  // namespace

void write_model(const ModelSpec& spec, const std::string& path, bool sparse) {
  const Header header = header_of(spec);
  OutputFile file(path);
  file.resize(header.bytes.size() + header.data_size);
  file.write_at(0, std::as_bytes(std::span(header.bytes)));
  if (!sparse) write_weights(pieces_of(spec, header.bytes.size()), file);
}

}  // namespace ggufmill::synth
