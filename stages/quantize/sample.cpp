#include "stages/quantize/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::string_view kAll = "all", kOneOf = "1/";

// Returns 0 if the text is not a sample.
std::uint64_t every_in(std::string_view text) {
  if (text == kAll) return 1;
  if (!text.starts_with(kOneOf)) return 0;
  text.remove_prefix(kOneOf.size());
  std::uint64_t every = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), every);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && every <= RowSample::kMax ? every : 0;
}

std::string check_sample(const ConfigNode& node) {
  return every_in(node.scalar) != 0 ? ""
                                    : fmt::format("{} is neither 'all' nor '1/N' with N from 1 to {}",
                                                  quoted_name(node.scalar), RowSample::kMax);
}

// Returns the distance between sampled rows.
std::uint64_t stride_of(const Shape& shape, RowSample sample) {
  const std::uint64_t stride = std::min({sample.every, shape.rows() / kMinSampledRows, shape.dims[1]});
  return stride > 2 && stride % 2 == 0 ? stride - 1 : std::max<std::uint64_t>(stride, 1);
}

// Returns a number that depends on the tensor's name alone.
std::uint64_t number_of(const std::string& name) {
  const std::string hash = text_hash(name);
  std::uint64_t number = 0;
  std::from_chars(hash.data(), hash.data() + std::min<std::size_t>(hash.size(), 16), number, 16);
  return number;
}

}  // namespace

Form<RowSample> sample_form() {
  auto form = converted<RowSample>(text().checked(check_sample), [](const std::string& text) -> Result<RowSample> {
    return RowSample{every_in(text)};
  });
  form.write_with([](const RowSample& sample) {
    return sample.is_all() ? std::string(kAll) : fmt::format("{}{}", kOneOf, sample.every);
  });
  return form;
}

Result<Tensor> sampled(const Tensor& tensor, RowSample sample) {
  const Shape shape = tensor.shape();
  const std::uint64_t stride = stride_of(shape, sample);
  if (stride == 1) return tensor;
  const std::uint64_t rows = shape.dims[1] / stride, number = number_of(tensor.name);
  const std::uint64_t start = number % (shape.dims[1] - rows * stride + 1), row = (number >> 32) % stride;
  Tensor made = tensor;
  ExpressionRef& values = made.expression;
  BOOST_OUTCOME_TRY(values, expressions::plain_rows(values));
  BOOST_OUTCOME_TRY(values, expressions::slice(values, 1, start, rows * stride));
  BOOST_OUTCOME_TRY(values,
                    expressions::reshape(values, {4, {shape.columns(), stride, rows, shape.dims[2] * shape.dims[3]}}));
  BOOST_OUTCOME_TRY(values, expressions::slice(values, 1, row, 1));
  BOOST_OUTCOME_TRY(values,
                    expressions::reshape(values, {shape.rank, {shape.columns(), rows, shape.dims[2], shape.dims[3]}}));
  return made;
}

}  // namespace ggufmill
