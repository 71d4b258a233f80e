#include "stages/huggingface/checkpoint/named_tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "pipeline/core/half.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::huggingface {
Result<std::vector<std::byte>> read_small_tensor(const Expression& tensor) {
  constexpr std::uint64_t kMax = 1 << 20;
  const Extent* extent = tensor.as_extent();
  if (!extent || extent->bytes > kMax)
    return input_error({}, fmt::format("{} of {} is not a small tensor of at most {} bytes", describe(tensor.shape),
                                       tensor.type->name, kMax));
  BOOST_OUTCOME_TRY(const auto file, open_source(extent->source->path));
  std::vector<std::byte> bytes(static_cast<std::size_t>(extent->bytes));
  BOOST_OUTCOME_TRY(file->read(extent->offset, bytes));
  return bytes;
}

Result<std::vector<float>> read_small_values(const Expression& tensor, std::uint64_t first, std::uint64_t count) {
  const Extent* extent = tensor.as_extent();
  if (!extent || tensor.type->block_elements != 1)
    return input_error({}, fmt::format("is computed, or {}, not F32, F16, or BF16", tensor.type->name));
  const std::uint64_t size = tensor.type->block_bytes;
  BOOST_OUTCOME_TRY(const ExpressionRef part,
                    expressions::extent(*tensor.type, Shape{1, {count, 1, 1, 1}},
                                        Extent{extent->source, extent->offset + first * size, count * size}));
  return read_small_values(*part);
}

Result<std::vector<float>> read_small_values(const Expression& tensor) {
  const std::string_view type = tensor.type->name;
  if (type != "F32" && type != "F16" && type != "BF16")
    return input_error({}, fmt::format("is {}, not F32, F16, or BF16", type));
  BOOST_OUTCOME_TRY(const auto bytes, read_small_tensor(tensor));
  std::vector<float> values(bytes.size() / tensor.type->block_bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == "F32") {
      std::memcpy(&values[i], &bytes[4 * i], 4);
      continue;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, &bytes[2 * i], 2);
    values[i] = type == "BF16" ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16) : float_of_half(bits);
  }
  return values;
}

Result<std::vector<std::int64_t>> read_small_integers(const Expression& tensor) {
  if (tensor.type->name != "I64") return input_error({}, fmt::format("is {}, not I64", tensor.type->name));
  BOOST_OUTCOME_TRY(const auto bytes, read_small_tensor(tensor));
  std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(std::int64_t));
  return values;
}

float showing_nonfinite(float made, std::initializer_list<float> from) {
  for (const float value : from)
    if (!std::isfinite(value)) return value;
  return made;
}

Result<ExpressionRef> to_type(ExpressionRef input, std::string_view type) {
  return expressions::cast(std::move(input), type_named(type));
}

Status check_not_empty(const std::vector<NamedTensor>& tensors, const std::string& where) {
  std::vector<const NamedTensor*> empty;
  for (const NamedTensor& tensor : tensors)
    if (tensor.values->shape.elements() == 0) empty.push_back(&tensor);
  if (empty.empty()) return ok();
  const auto described = [](const NamedTensor& tensor) {
    return fmt::format("tensor {} is empty: its shape is {}", quoted_name(tensor.name), describe(tensor.values->shape));
  };
  if (empty.size() == 1)
    return input_error(where, described(*empty[0]), "take the tensor from the original checkpoint, or save it again");
  Error error = input_error(
      where, fmt::format("{} of {} tensors are empty", empty.size(), tensors.size()),
      "one rank of DeepSpeed ZeRO-3 saves such tensors if it does not gather the weights: run zero_to_fp32.py in the "
      "trainer's output folder, or save again with stage3_gather_16bit_weights_on_model_save");
  error.detail = described(*empty[0]);
  return error;
}

}  // namespace ggufmill::huggingface
