#pragma once
// Calls an operation by its name, with a request and a result in JSON.

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/api/operations/option_names.h"

namespace ggufmill {

struct CalledOperation {
  std::string json;                // an object: the members of the result, and `warnings`, a list of strings
  std::optional<Error> failure{};  // see Answer
};

// `request`: a JSON object with the operation's options; empty: none. A byte of a path that is not UTF-8 is written as
// Python does, as a lone surrogate: \udcNN. Errors name options as `caller` writes them.
// Thread-safe. Fails with exit code 2 for an unknown operation, and for unknown or wrong options.
Result<CalledOperation> call_operation(const Context& context, std::string_view name, std::string_view request,
                                       Caller caller, const Call& call);
// Parses the text of a request.
Result<boost::json::object> request_of(std::string_view text);
// Calls an operation with the members of the object.
Result<CalledOperation> call_operation(const Context& context, std::string_view name,
                                       const boost::json::object& request, Caller caller, const Call& call);

}  // namespace ggufmill
