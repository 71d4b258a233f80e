// Built instead of http.cpp if libcurl was not found.

#include "pipeline/core/text.h"
#include "pipeline/io/remote/http.h"

namespace ggufmill::remote {

bool is_http_available() { return false; }
std::string_view Answer::header(std::string_view) const { return {}; }
Answer send(const Request&, const BodySink&) { return {}; }
std::string certificate_file() { return {}; }
std::string http_libraries() { return {}; }
std::string origin_of(const std::string&) { return {}; }

}  // namespace ggufmill::remote
