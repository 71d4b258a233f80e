// Built instead of http.cpp if libcurl was not found.

#include "pipeline/core/text.h"
#include "pipeline/io/remote/http.h"

namespace ggufmill::remote {

bool is_http_available() { return false; }
std::string_view Answer::header(std::string_view) const { return {}; }
Answer send(const Request&, const BodySink&) { return {}; }
std::string certificate_file() { return {}; }
std::string http_libraries() { return {}; }
std::optional<UrlPlace> place_of_url(const std::string&) { return {}; }
std::string origin_of(const std::string&) { return {}; }
bool is_this_machine(const UrlPlace&) { return false; }
std::chrono::milliseconds Patience::total(std::uint64_t) const { return {}; }

}  // namespace ggufmill::remote
