#include "pipeline/io/source_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/remote_scheme.h"
#include "pipeline/io/source_scheme.h"

namespace ggufmill {
namespace {

std::string supported_schemes() {
  std::string names;
  for (const SourceScheme* scheme : source_schemes())
    for (const std::string_view name : scheme->names()) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

}  // namespace

std::vector<const SourceScheme*>& source_schemes() {
  static std::vector<const SourceScheme*> rows{&local_files(), &remote::web(), &remote::hub(), &remote::s3()};
  return rows;
}

bool is_address(std::string_view path) {
  const std::size_t end = path.find("://");
  if (end == path.npos || end == 0) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return is_letter(path.front()) && std::ranges::all_of(path.substr(0, end), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
         });
}

bool SourceScheme::is_named(std::string_view scheme) const { return std::ranges::count(names(), scheme) != 0; }

Result<const SourceScheme*> find_source_scheme(const std::string& path) {
  if (!is_address(path)) return &local_files();
  const std::string name = path.substr(0, path.find("://"));
  for (const SourceScheme* scheme : source_schemes())
    if (scheme->is_named(name)) return scheme;
  return remote::bad_address(path, fmt::format("has the unknown scheme {}", quoted_name(name)),
                             name == "file" ? "write only the path" : "supported schemes: " + supported_schemes());
}

Result<std::shared_ptr<const ByteSource>> ByteSource::open(const SourceFile& described, IoMode mode,
                                                           const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(const SourceScheme* const scheme, find_source_scheme(described.path));
  return scheme->open(described, mode, stop);
}

Result<std::shared_ptr<const ByteSource>> open_source(const std::string& path) {
  BOOST_OUTCOME_TRY(const SourceScheme* const scheme, find_source_scheme(path));
  return scheme->open(path);
}

Result<std::string> pinned(const std::string& path) {
  BOOST_OUTCOME_TRY(const SourceScheme* const scheme, find_source_scheme(path));
  return scheme->pinned(path);
}

bool is_file(const std::string& path) {
  const auto scheme = find_source_scheme(path);
  return !scheme || scheme.value()->is_file(path);  // opening it reports the reason
}

bool is_folder(const std::string& path) {
  const auto scheme = find_source_scheme(path);
  return scheme && scheme.value()->is_folder(path);
}

Result<std::vector<std::string>> paths_in(const std::string& folder) {
  BOOST_OUTCOME_TRY(const SourceScheme* const scheme, find_source_scheme(folder));
  return scheme->paths_in(folder);
}

std::string name_of_address(std::string_view address) {
  while (address.ends_with('/')) address.remove_suffix(1);
  std::string_view name = address.substr(address.rfind('/') + 1);
  return std::string(name.substr(0, name.find_first_of("@:")));
}

bool is_same(const SourceFile& a, const SourceFile& b) {
  return a.bytes == b.bytes && a.header_hash == b.header_hash && a.modified == b.modified;
}

Error changed(const SourceFile& before, const SourceFile& now) {
  Error error = input_error(before.path, "the file changed since its header was read",
                            "another program is writing to it: wait until it has finished, then start over");
  if (now.bytes != before.bytes)
    error.detail = fmt::format("{} bytes long, but {} before", now.bytes, before.bytes);
  else if (is_address(now.path))
    error.detail = "the server reports a different version";
  else if (now.header_hash != before.header_hash)
    error.detail = "its beginning is different";
  else
    error.detail = "it was modified";
  return error;
}

std::span<const char* const> server_variables() {
  static constexpr const char* kNames[] = {
      "HF_ENDPOINT",         "HF_HOME",          "HF_TOKEN_PATH",  "XDG_CACHE_HOME",
      "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION",     "AWS_DEFAULT_REGION",
      "AWS_PROFILE",         "AWS_CONFIG_FILE",  "CURL_CA_BUNDLE", "AWS_SHARED_CREDENTIALS_FILE",
      "SSL_CERT_FILE",       "SSL_CERT_DIR"};
  return kNames;
}

}  // namespace ggufmill
