#include "pipeline/io/remote/credentials.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/files.h"
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

Result<std::string> text_of_file(const std::string& path, std::string_view variable) {
  const Descriptor file = open_file(kCurrentFolder, path, kOpenRead | kOpenNoWaiting);
  FileStatus info;
  if (!file || !get_status(file.get(), info) || info.is_folder()) return std::string();
  const auto refused = [&](std::string_view why) {
    return usage_error(fmt::format("{}: {} {}", variable, quoted_name(path), why),
                       fmt::format("name a regular file of at most {} in {}", human_bytes(kMaxFileBytes), variable));
  };
  std::string text;
  const auto read = [&](std::size_t bytes) {
    text.resize(bytes);
    std::size_t at = 0;
    while (at < bytes) {
      const auto count = retry([&] { return system_calls().read(file.get(), text.data() + at, bytes - at, at); });
      if (count < 0) return false;
      if (count == 0) break;
      at += static_cast<std::size_t>(count);
    }
    text.resize(at);
    return true;
  };
  if (!info.is_file()) {  // an empty one, like /dev/null, stands for no file
    if (info.kind == FileStatus::Kind::kDevice && read(1) && text.empty()) return text;
    return refused("is not a regular file");
  }
  if (!read(kMaxFileBytes + 1)) return refused("cannot be read");
  if (text.size() > kMaxFileBytes) return refused("is too large");
  return text;
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
