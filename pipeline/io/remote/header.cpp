#include "pipeline/io/remote/header.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {

bool is_header_name(std::string_view name) {
  return !name.empty() && name.size() <= 256 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view value) {
  return value.size() <= kMaxHeaderValue && std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string why_not_sent(std::string_view name, std::string_view value) {
  constexpr std::string_view kOfTheClient[] = {
      "Host",           "Content-Length", "Transfer-Encoding",  "Connection",          "Keep-Alive",       "TE",
      "Trailer",        "Upgrade",        "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Expect",
      "HTTP2-Settings", "Alt-Used",       "Early-Data"};
  if (!is_header_name(name)) return fmt::format("the header {} has an invalid name", quoted_answer(name, 60));
  if (std::ranges::any_of(kOfTheClient, [&](std::string_view own) { return same_word(name, own); }))
    return fmt::format("the header '{}' may only be set by the HTTP client", name);
  if (!is_header_value(value)) return fmt::format("the header {} has an invalid value", quoted_answer(name, 60));
  return "";
}

std::string why_not_sent(std::string_view line) {
  const std::size_t colon = line.find(':');
  return why_not_sent(line.substr(0, colon), colon == line.npos ? std::string_view() : line.substr(colon + 1));
}

}  // namespace ggufmill::remote
