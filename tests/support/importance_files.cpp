#include "tests/support/importance_files.h"

#include <utility>

#include "pipeline/core/byte_order.h"
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
