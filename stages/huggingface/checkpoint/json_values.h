#pragma once
// Values in the JSON files of a checkpoint.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace ggufmill::huggingface {

// Returns true if Python treats the value as true: not null, false, 0, "" or empty.
bool is_true(const boost::json::value& value);
// Convert as Python does: true and false are 1 and 0. Return nullopt if the value is not a number, or does not fit in
// 64 bits.
std::optional<std::int64_t> whole_number(const boost::json::value& value);
std::optional<double> number_value(const boost::json::value& value);
// Formats a value for messages: quoted and truncated.
std::string shown(const boost::json::value& value);

}  // namespace ggufmill::huggingface
