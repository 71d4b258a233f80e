#pragma once
// Times as servers write them.

#include <cstdint>
#include <string>

namespace ggufmill::remote {

// Return seconds since 1970; 0 if the text is not a time of this form.
std::int64_t seconds_of_http_date(const std::string& text);  // "Mon, 02 Jan 2006 15:04:05 GMT"
std::int64_t seconds_of_iso_time(
    const std::string& text);  // "2006-01-02T15:04:05Z", ".250Z", "+01:00"; UTC without zone

}  // namespace ggufmill::remote
