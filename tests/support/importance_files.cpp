#include "tests/support/importance_files.h"

#include <bit>
#include <cmath>
#include <random>
#include <utility>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/covariance.h"
#include "pipeline/io/input_file.h"

namespace ggufmill {
namespace {

std::string int_bytes(std::int32_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }

std::string legacy_text(std::string_view text) {
  return int_bytes(static_cast<std::int32_t>(text.size())) + std::string(text);
}

Result<std::vector<float>> read_floats(const Extent& extent) {
  std::vector<float> numbers(extent.bytes / sizeof(float));
  if (numbers.empty()) return numbers;
  BOOST_OUTCOME_TRY(const auto file, InputFile::open(extent.source->path));
  BOOST_OUTCOME_TRY(file->read(extent.offset, std::as_writable_bytes(std::span(numbers))));
  if (extent.big_endian) swap_words(sizeof(float), std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

}  // namespace

std::string float_bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::string legacy_entry(std::string_view name, std::int32_t calls, const std::vector<float>& sums) {
  return legacy_text(name) + int_bytes(calls) + int_bytes(static_cast<std::int32_t>(sums.size())) + float_bytes(sums);
}

std::string legacy_importance(const std::vector<std::string>& entries, std::string_view tail) {
  std::string file = int_bytes(static_cast<std::int32_t>(entries.size()));
  for (const std::string& entry : entries) file += entry;
  return file.append(tail);
}

std::string legacy_tail(std::int32_t chunks, std::string_view dataset) {
  return int_bytes(chunks) + legacy_text(dataset);
}

GgufBuilder gguf_importance() {
  GgufBuilder file;
  file.metadata = {
      {"general.type", metadata_string("imatrix")},
      {"imatrix.datasets", metadata_array(MetadataType::kString, {metadata_string("a.txt"), metadata_string("b.txt")})},
      {"imatrix.chunk_count", metadata_unsigned(MetadataType::kUint32, 7)},
      {"imatrix.chunk_size", metadata_unsigned(MetadataType::kUint32, 512)},
  };
  return file;
}

void add_entry(GgufBuilder& file, const std::string& name, const std::vector<float>& sums,
               const std::vector<float>& counts) {
  file.tensors.push_back({name + ".in_sum2", {sums.size() / counts.size(), counts.size()}, "F32", float_bytes(sums)});
  file.tensors.push_back({name + ".counts", {1, counts.size()}, "F32", float_bytes(counts)});
}

void add_activations(GgufBuilder& file, const std::string& name, const std::vector<float>& sums) {
  file.tensors.push_back({name + ".in_sum", {sums.size()}, "F32", float_bytes(sums)});
}

namespace {

using Gram = std::vector<double>;  // sums of products, by rows

// Returns a random vector. Neighbouring columns are correlated.
std::vector<double> random_vector(std::size_t columns, std::size_t dead, std::mt19937& random,
                                  std::normal_distribution<double>& normal) {
  std::vector<double> x(columns);
  double shared = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    shared = 0.8 * shared + normal(random);
    x[i] = i == dead ? 0 : (shared + 0.5 * normal(random)) * (1 + static_cast<double>(i % 7));
  }
  return x;
}

// Adds the products of random vectors.
void add_random(std::size_t columns, std::size_t tokens, std::size_t dead, std::mt19937& random, Gram& gram) {
  std::normal_distribution<double> normal;
  for (std::size_t token = 0; token < tokens; ++token) {
    const std::vector<double> x = random_vector(columns, dead, random, normal);
    for (std::size_t i = 0; i < columns; ++i)
      for (std::size_t k = 0; k < columns; ++k) gram[i * columns + k] += x[i] * x[k];
  }
}

std::string packed(const Gram& gram, std::size_t columns, std::size_t block) {
  std::string bytes;
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t k = i + 1; k < std::min(columns, (i / block + 1) * block); ++k) {
      const double product = gram[i * columns + i] * gram[k * columns + k];
      const std::uint16_t half = half_of_correlation(product > 0 ? gram[i * columns + k] / std::sqrt(product) : 0);
      bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
    }
  return bytes;
}

}  // namespace

GgufBuilder gguf_covariance(const std::vector<RandomInputs>& inputs, std::uint32_t block, std::uint32_t seed) {
  GgufBuilder file = gguf_importance();
  std::mt19937 random(seed);
  std::vector<MetadataValue> tensors, owners;
  for (const RandomInputs& input : inputs) {
    const std::size_t columns = input.columns, width = block == 0 ? columns : block;
    std::vector<float> sums, counts;
    std::string correlations;
    Gram all(columns * columns);
    for (const std::size_t tokens : input.tokens) {
      Gram gram(columns * columns);
      add_random(columns, tokens, input.dead, random, gram);
      for (std::size_t i = 0; i < columns; ++i) sums.push_back(static_cast<float>(gram[i * columns + i]));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += gram[i];
      counts.push_back(static_cast<float>(tokens));
      if (!input.is_pooled) correlations += packed(gram, columns, width);
    }
    if (input.is_pooled) correlations = packed(all, columns, width);
    for (const std::string& tensor : input.tensors) {
      add_entry(file, tensor, sums, counts);
      tensors.push_back(metadata_string(tensor));
      owners.push_back(metadata_string(input.tensors[0]));
    }
    const std::size_t sets = input.is_pooled ? 1 : input.tokens.size();
    file.tensors.push_back(
        {input.tensors[0] + ".in_corr", {correlations.size() / 2 / sets, sets}, "F16", correlations});
    if (input.held_out == 0) continue;
    std::string vectors;
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < input.held_out * input.tokens.size(); ++i)
      for (const double number : random_vector(columns, input.dead, random, normal)) {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
        const auto half = static_cast<std::uint16_t>(bits >> 16);
        vectors.append(reinterpret_cast<const char*>(&half), sizeof half);
      }
    file.tensors.push_back(
        {input.tensors[0] + ".in_rows", {columns, input.held_out, input.tokens.size()}, "BF16", vectors});
  }
  file.metadata.push_back({"covariance.version", metadata_unsigned(MetadataType::kUint32, 1)});
  file.metadata.push_back({"covariance.block", metadata_unsigned(MetadataType::kUint32, block)});
  file.metadata.push_back({"covariance.tensors", metadata_array(MetadataType::kString, tensors)});
  file.metadata.push_back({"covariance.inputs", metadata_array(MetadataType::kString, owners)});
  return file;
}

Result<std::vector<float>> read_weights(const Importance& importance, std::uint64_t matrix) {
  std::vector<ImportanceNumbers> numbers;
  for (const Importance::Ranges& ranges : importance.ranges(matrix)) {
    BOOST_OUTCOME_TRY(auto sums, read_floats(ranges.sums));
    BOOST_OUTCOME_TRY(auto counts, read_floats(ranges.counts));
    numbers.push_back({std::move(sums), std::move(counts)});
  }
  return importance.to_weights(matrix, std::move(numbers));
}

}  // namespace ggufmill
