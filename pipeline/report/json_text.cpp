#include "pipeline/report/json_text.h"

#include <cmath>
#include <cstdint>

#include "pipeline/core/text.h"

namespace ggufmill {

namespace json = boost::json;

json::value json_text(std::string_view text) {
  if (is_utf8(text)) return json::string(text);
  return json::string(quoted_name(text, SIZE_MAX));
}

json::value json_number(double number) { return std::isfinite(number) ? json::value(number) : json::value(); }

}  // namespace ggufmill
