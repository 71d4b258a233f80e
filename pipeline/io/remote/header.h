#pragma once
// Rules for the headers of requests. Source: RFC 9110, sections 5.1, 5.5, 5.6.2 and 7.6.1.

#include <string>
#include <string_view>

namespace ggufmill::remote {

// Returns true if `name` is a token.
bool is_header_name(std::string_view name);
// Returns true if `value` has only spaces and printable ASCII characters, and at most kMaxHeaderValue bytes.
inline constexpr std::size_t kMaxHeaderValue = 16 << 10;
bool is_header_value(std::string_view value);

// Returns why a header may not be part of a request, for a message; empty if it may: the name or the value is
// malformed, or it belongs to the connection, the host, or the length of the body, which only the HTTP client decides.
std::string why_not_sent(std::string_view name, std::string_view value);
// The same for a line "Name: value".
std::string why_not_sent(std::string_view line);

}  // namespace ggufmill::remote
