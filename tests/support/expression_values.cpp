#include "tests/support/expression_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tests/support/files.h"

namespace ggufmill {
namespace {

// Decodes a small float with the given number of exponent and mantissa bits.
float small_float(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const std::uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const float fraction = std::ldexp(static_cast<float>(mantissa), -mantissa_bits);
  const float value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

template <class Number>
Number number_at(const std::string& bytes, std::size_t index) {
  Number number;
  std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
  return number;
}

float element(const std::string& bytes, std::size_t i, std::string_view type) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(bytes.at(at)); };
  if (type == "F64") return static_cast<float>(number_at<double>(bytes, i));
  if (type == "F32") return number_at<float>(bytes, i);
  if (type == "F16") return small_float(number_at<std::uint16_t>(bytes, i), 5, 10);
  if (type == "BF16") return std::bit_cast<float>(std::uint32_t{number_at<std::uint16_t>(bytes, i)} << 16);
  if (type == "F8_E4M3") return small_float(byte(i), 4, 3);
  if (type == "F8_E5M2") return small_float(byte(i), 5, 2);
  if (type == "I8") return static_cast<float>(static_cast<std::int8_t>(byte(i)));
  if (type == "U8") return byte(i);
  if (type == "U2") return static_cast<float>(byte(i / 4) >> (i % 4 * 2) & 3);
  if (type == "U4") return static_cast<float>(byte(i / 2) >> (i % 2 * 4) & 15);
  for (const std::size_t bits : {3, 5, 6})
    if (type == fmt::format("U{}", bits)) {
      unsigned code = 0;
      for (std::size_t b = 0; b < bits; ++b)
        code |= (static_cast<unsigned>(byte((i * bits + b) / 8)) >> ((i * bits + b) % 8) & 1) << b;
      return static_cast<float>(code);
    }
  if (type == "I32") return static_cast<float>(number_at<std::int32_t>(bytes, i));
  if (type == "I64") return static_cast<float>(number_at<std::int64_t>(bytes, i));
  throw std::runtime_error("no values of " + std::string(type));
}

// Rounds to the nearest number with this many mantissa bits, ties to even.
float rounded(float value, int mantissa_bits, int least_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least_exponent) - mantissa_bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}

std::vector<float> converted(std::vector<float> values, std::string_view type) {
  for (float& value : values) {
    if (type == "F16") value = rounded(value, 10, -14);
    if (type == "BF16") value = rounded(value, 7, -126);
  }
  return values;
}

std::vector<float> read(const Expression& node) {
  const std::string bytes = read_text(node.extent.source->path).substr(node.extent.offset, node.extent.bytes);
  std::vector<float> values;
  for (std::size_t i = 0; i < node.shape.elements(); ++i) values.push_back(element(bytes, i, node.type->name));
  return values;
}

using Place = std::array<std::uint64_t, 4>;

std::uint64_t index_of(const Shape& shape, const Place& at) {
  return ((at[3] * shape.dims[2] + at[2]) * shape.dims[1] + at[1]) * shape.dims[0] + at[0];
}

Place place_of(const Shape& shape, std::uint64_t index) {
  Place at{};
  for (std::size_t d = 0; d < 4; ++d) {
    at[d] = index % shape.dims[d];
    index /= shape.dims[d];
  }
  return at;
}

// Returns the input row that becomes row `row` of the result.
std::uint64_t reordered(const Expression& node, std::uint64_t row) {
  std::vector<std::uint64_t> at(node.factors.size());
  for (const std::uint32_t axis : node.order) {
    at[axis] = row % node.factors[axis];
    row /= node.factors[axis];
  }
  std::uint64_t from = 0;
  for (std::size_t axis = node.factors.size(); axis-- > 0;) from = from * node.factors[axis] + at[axis];
  return from;
}

}  // namespace

std::vector<float> expression_values(const Expression& node) {
  if (node.operation == Operation::kExtent) return read(node);
  if (node.operation == Operation::kConstant) return node.values;
  std::vector<std::vector<float>> inputs;
  for (const ExpressionRef& input : node.inputs) inputs.push_back(expression_values(*input));
  if (node.operation == Operation::kReshape) return inputs[0];
  if (node.operation == Operation::kCast) return converted(std::move(inputs[0]), node.type->name);
  std::vector<float> values;
  if (node.operation == Operation::kStack) {
    for (const std::vector<float>& input : inputs) values.insert(values.end(), input.begin(), input.end());
    return values;
  }
  for (std::uint64_t i = 0; i < node.shape.elements(); ++i) {
    Place at = place_of(node.shape, i);
    std::size_t from = 0;
    switch (node.operation) {
      case Operation::kConcat:
        for (; at[node.axis] >= node.inputs[from]->shape.dims[node.axis]; ++from)
          at[node.axis] -= node.inputs[from]->shape.dims[node.axis];
        break;
      case Operation::kSlice:
        at[node.axis] += node.first;
        break;
      case Operation::kReorderRows:
        at[1] = reordered(node, at[1]);
        break;
      case Operation::kTranspose: {
        Place other{};
        for (std::size_t d = 0; d < node.order.size(); ++d) other[node.order[d]] = at[d];
        at = other;
        break;
      }
      case Operation::kMap:
        values.push_back(node.map->apply(inputs[0][i], node.parameter));
        continue;
      case Operation::kScaleBlocks: {
        const std::uint64_t block =
            index_of(node.inputs[1]->shape, {at[0] / node.block[0], at[1] / node.block[1], at[2], at[3]});
        values.push_back((inputs[0][i] - (inputs.size() > 2 ? inputs[2][block] : 0)) * inputs[1][block]);
        continue;
      }
      case Operation::kAddBlocks:
        values.push_back(
            inputs[0][i] +
            inputs[1][index_of(node.inputs[1]->shape, {at[0] / node.block[0], at[1] / node.block[1], at[2], at[3]})]);
        continue;
      case Operation::kLookup: {
        const std::size_t each = inputs[1].size() / 256;
        values.push_back(inputs[1].at(static_cast<std::size_t>(inputs[0][i / each]) * each + i % each));
        continue;
      }
      case Operation::kLowRank: {
        const std::size_t first = inputs.size() % 2;
        double sum = first == 1 ? inputs[0][i] : 0;
        for (std::size_t p = 0; p < node.scales.size(); ++p) {
          const Shape &a = node.inputs[first + 2 * p]->shape, &b = node.inputs[first + 2 * p + 1]->shape;
          double product = 0;
          for (std::uint64_t k = 0; k < b.dims[0]; ++k)
            product += static_cast<double>(inputs[first + 2 * p + 1][index_of(b, {k, at[1], at[2], at[3]})]) *
                       static_cast<double>(inputs[first + 2 * p][index_of(a, {at[0], k, at[2], at[3]})]);
          sum += node.scales[p] * product;
        }
        values.push_back(static_cast<float>(sum));
        continue;
      }
      case Operation::kGather:
        at[0] = static_cast<std::uint64_t>(inputs[1].at(at[0]));
        break;
      default:
        throw std::runtime_error("no values of " + std::string(name_of(node.operation)));
    }
    values.push_back(inputs[from][index_of(node.inputs[from]->shape, at)]);
  }
  return values;
}

}  // namespace ggufmill
