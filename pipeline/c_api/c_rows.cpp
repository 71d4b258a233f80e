// Rows in memory, for the C interface.
#include <fmt/format.h>

#include "pipeline/c_api/c_support.h"
#include "pipeline/core/encoder.h"
#include "pipeline/core/text.h"

namespace ggufmill::c {
namespace {

Result<const TypeInfo*> find_type(const Context& context, const std::string& name) {
  if (const TypeInfo* type = context.kernels().types().find(name)) return type;
  if (const TypeInfo* type = find_source_type(name)) return type;
  Strings names;
  for (const TypeInfo* type : context.kernels().types().all()) names.emplace_back(type->name);
  const std::string meant = did_you_mean(name, names);
  return usage_error("unknown type " + quoted_name(name),
                     meant.empty() ? "the operation `types` lists them" : fmt::format("did you mean '{}'?", meant));
}

Result<std::uint64_t> checked_row_bytes(const TypeInfo& type, std::uint64_t columns) {
  if (columns % type.block_elements != 0)
    return usage_error(fmt::format("rows of {} values are not a whole number of blocks of {}", columns, type.name),
                       fmt::format("{} has blocks of {}: the number of columns must be a multiple of that", type.name,
                                   type.block_elements));
  return bytes_of(type, columns);
}

// Returns the size of all rows.
Result<std::uint64_t> all_bytes(const TypeInfo& type, std::uint64_t rows, std::uint64_t columns) {
  BOOST_OUTCOME_TRY(const std::uint64_t row, checked_row_bytes(type, columns));
  std::uint64_t all = 0;
  if (!__builtin_mul_overflow(row, rows, &all)) return all;
  return usage_error(fmt::format("{} rows of {} bytes are too many", rows, row));
}

Status expect_bytes(const char* name, std::uint64_t bytes, std::uint64_t expected) {
  if (bytes == expected) return ok();
  return usage_error(fmt::format("'{}' has {} bytes, but the rows take {}", name, bytes, expected));
}

struct Weights {
  const float* values;
  std::uint64_t rows;
};

// Rows to convert, and the memory for the result, whose sizes follow from the types.
struct Given {
  const void* values;
  void* into;
  std::uint64_t rows, columns;
};

Status convert(const Context& context, const TypeInfo& from, const TypeInfo& to, const Given& given,
               const Weights& importance, const RowsOptions& options) {
  BOOST_OUTCOME_TRY(const std::uint64_t source, all_bytes(from, given.rows, given.columns));
  BOOST_OUTCOME_TRY(const std::uint64_t target, all_bytes(to, given.rows, given.columns));
  RowConversion conversion{.from = &from,
                           .values = {static_cast<const std::byte*>(given.values), source},
                           .to = &to,
                           .into = {static_cast<std::byte*>(given.into), target},
                           .columns = given.columns};
  std::uint64_t weights = 0;
  if (importance.values) {
    if (importance.rows == 0) return usage_error("the importance has no rows", "set importance.rows to 1 or more");
    if (__builtin_mul_overflow(importance.rows, given.columns, &weights))
      return usage_error("there are too many rows of importance");
    conversion.importance = {importance.values, weights};
  }
  return context.convert_rows(conversion, options);
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_row_bytes(const ggufmill_context* context, const char* type, uint64_t columns, uint64_t* bytes,
                                   ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"type", type}, {"bytes", bytes}}));
    BOOST_OUTCOME_TRY(const TypeInfo* const found, find_type(*context->context, type));
    BOOST_OUTCOME_TRY(*bytes, checked_row_bytes(*found, columns));
    return ok();
  });
}

ggufmill_status ggufmill_quantize_rows(const ggufmill_context* context, const char* type, const char* from,
                                       const void* values, uint64_t rows, uint64_t columns, const float* importance,
                                       uint64_t importance_rows, void* into, uint64_t bytes, unsigned threads,
                                       ggufmill_control* control, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"type", type}, {"values", values}, {"into", into}}));
    BOOST_OUTCOME_TRY(const TypeInfo* const target, find_type(*context->context, type));
    BOOST_OUTCOME_TRY(const TypeInfo* const source, find_type(*context->context, from ? from : "F32"));
    BOOST_OUTCOME_TRY(const std::uint64_t expected, all_bytes(*target, rows, columns));
    BOOST_OUTCOME_TRY(expect_bytes("into", bytes, expected));
    return convert(*context->context, *source, *target, {values, into, rows, columns}, {importance, importance_rows},
                   {threads, stop_of(control)});
  });
}

ggufmill_status ggufmill_choose_levels(const ggufmill_context* context, const char* type, const float* values,
                                       uint64_t rows, uint64_t columns, const double* covariance, unsigned sweeps,
                                       void* encoded, uint64_t bytes, unsigned threads, ggufmill_control* control,
                                       ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require(
        {{"context", context}, {"type", type}, {"values", values}, {"covariance", covariance}, {"encoded", encoded}}));
    BOOST_OUTCOME_TRY(const TypeInfo* const found, find_type(*context->context, type));
    BOOST_OUTCOME_TRY(const std::uint64_t expected, all_bytes(*found, rows, columns));
    BOOST_OUTCOME_TRY(expect_bytes("encoded", bytes, expected));
    if (sweeps > Encoder::kMaxSweeps)
      return usage_error(fmt::format("{} sweeps are too many", sweeps),
                         fmt::format("use at most {}", Encoder::kMaxSweeps));
    std::uint64_t elements = 0;
    if (__builtin_mul_overflow(columns, columns, &elements)) return usage_error("there are too many columns");
    const LevelChoice choice{found,   {values, rows * columns}, {static_cast<std::byte*>(encoded), bytes},
                             columns, {covariance, elements},   sweeps};
    return context->context->choose_levels(choice, {threads, stop_of(control)});
  });
}

ggufmill_status ggufmill_decode_rows(const ggufmill_context* context, const char* type, const void* values,
                                     uint64_t bytes, uint64_t rows, uint64_t columns, float* into, unsigned threads,
                                     ggufmill_control* control, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"type", type}, {"values", values}, {"into", into}}));
    BOOST_OUTCOME_TRY(const TypeInfo* const source, find_type(*context->context, type));
    BOOST_OUTCOME_TRY(const std::uint64_t expected, all_bytes(*source, rows, columns));
    BOOST_OUTCOME_TRY(expect_bytes("values", bytes, expected));
    return convert(*context->context, *source, type_named("F32"), {values, into, rows, columns}, {nullptr, 0},
                   {threads, stop_of(control)});
  });
}
