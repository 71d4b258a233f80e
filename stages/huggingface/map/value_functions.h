#pragma once
// The named functions of value rules, by kind. A missing argument is null and, unless the function is about missing
// values, gives a missing result. Errors carry no place.

#include <boost/json/value.hpp>
#include <cstdint>
#include <span>

#include "pipeline/core/error.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {

std::span<const ValueFunction> number_functions();
std::span<const ValueFunction> condition_functions();
std::span<const ValueFunction> list_functions();
std::span<const ValueFunction> text_functions();
std::span<const ValueFunction> object_functions();
std::span<const ValueFunction> checkpoint_functions();

// Helpers of these functions.
using Arguments = std::span<const boost::json::value>;
inline constexpr std::size_t kManyArguments = 64;  // maximum number of a function that takes any number of them

Result<double> number_of(const boost::json::value& value);
Result<std::int64_t> whole_of(const boost::json::value& value);
Result<const boost::json::array*> array_of(const boost::json::value& value);
// Returns the number of items of a list that a function makes: 0 to 100,000.
Result<std::int64_t> items_of(const boost::json::value& count);
// Memory of a value, in units of about 16 bytes.
std::size_t weight_of(const boost::json::value& value);
inline constexpr std::size_t kMaxWeight = 2'000'000;  // of a value, and of all that a lookup passes to functions
// Fails if a list of `items` copies of a value would weigh more than kMaxWeight.
Status check_copies(std::size_t items, const boost::json::value& value);
bool any_missing(Arguments arguments);
// Returns true for equal numbers even if only one of them is an integer.
bool same(const boost::json::value& a, const boost::json::value& b);

}  // namespace ggufmill::huggingface
