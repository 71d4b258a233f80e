#include "pipeline/io/remote/credentials.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/io/platform/process.h"
#include "pipeline/io/remote/remote_scheme.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {

std::string environment(const char* name) { return environment_variable(name).value_or(""); }

std::string environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = environment(name); !value.empty()) return value;
  return {};
}

Result<std::string> checked_secret(std::string secret, std::string_view from) {
  if (secret.size() > kMaxSecretLength || std::ranges::any_of(secret, [](char c) { return c <= 0x20 || c >= 0x7f; }))
    return usage_error(fmt::format("{} does not contain a valid token or key", from),
                       "it contains whitespace or other invalid characters, or is too long");
  remember_secret(secret);
  return secret;
}

Result<std::string> endpoint_of(std::string text, std::string_view from, std::string_view otherwise) {
  if (text.empty()) return std::string(otherwise);
  while (text.ends_with('/')) text.pop_back();
  if (web().is_named(text.substr(0, text.find("://"))) && web().parse(text)) return text;
  return usage_error(fmt::format("the endpoint in {} is not a server address", from),
                     "write https://HOST, without user, password, and query");
}

}  // namespace ggufmill::remote
