#include "pipeline/remote/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "pipeline/core/text.h"
#include "pipeline/remote/http.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kLongestSecret = 8192;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Returns the first of these variables that is set and not empty.
std::string environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = environment(name); !value.empty()) return value;
  return {};
}

// The error message never contains the secret.
Result<std::string> checked_secret(std::string secret, std::string_view from) {
  if (secret.size() > kLongestSecret || std::ranges::any_of(secret, [](char c) { return c <= 0x20 || c >= 0x7f; }))
    return usage_error(fmt::format("{} does not contain a valid token or key", from),
                       "it contains whitespace or other invalid characters, or is too long");
  return secret;
}

// Returns `text` without trailing slashes, or `otherwise` if it is empty.
Result<std::string> endpoint_of(std::string text, std::string_view from, std::string_view otherwise) {
  if (text.empty()) return std::string(otherwise);
  while (text.ends_with('/')) text.pop_back();
  const auto parsed = parse_address(text);
  if (parsed && parsed.value().scheme == Scheme::kHttp) return text;
  return usage_error(fmt::format("the endpoint in {} is not a server address", from),
                     "write https://HOST, without user, password, and query");
}

// Returns true if nobody else can read data sent there: HTTPS, or this machine.
bool is_private(const std::string& url) {
  const std::string origin = origin_of(url);
  return origin.starts_with("https://") || origin.starts_with("http://localhost:") ||
         origin.starts_with("http://127.") || origin.starts_with("http://[::1]:");
}

// ---- the hub ----

// Returns the path of the file that `hf auth login` writes.
std::string token_file() {
  if (std::string path = environment("HF_TOKEN_PATH"); !path.empty()) return path;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/token";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/huggingface/token";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/token";
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line(kLongestSecret, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return std::string(trimmed(std::string_view(line).substr(0, line.find('\n'))));
}

Result<std::string> hub_token() {
  if (std::string token(trimmed(environment({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}))); !token.empty())
    return checked_secret(std::move(token), "HF_TOKEN");
  const std::string file = token_file();
  return checked_secret(first_line(file), fmt::format("'{}'", file));
}

Result<Access> access_to_hub(const std::string& path) {
  Access access;
  BOOST_OUTCOME_TRY(const std::string endpoint,
                    endpoint_of(environment("HF_ENDPOINT"), "HF_ENDPOINT", "https://huggingface.co"));
  access.url = endpoint + path;
  BOOST_OUTCOME_TRY(const std::string token, hub_token());
  if (token.empty()) return access;
  access.token_withheld = !is_private(access.url);
  if (access.token_withheld) return access;
  access.headers.push_back("Authorization: Bearer " + token);
  access.is_anonymous = false;
  return access;
}

// ---- S3 ----

// Returns the values of one section of an AWS configuration file ("[default]", "key = value").
std::map<std::string, std::string> section_of(const std::string& path, std::string_view section) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  bool is_inside = false;
  file.exceptions(std::ios::badbit);  // propagates std::bad_alloc
  std::size_t lines = 0;
  for (std::string line; ++lines < 10'000 && std::getline(file, line);) {
    line = std::string(trimmed(line));
    if (line.starts_with('[')) is_inside = line == fmt::format("[{}]", section);
    const std::size_t equals = line.find('=');
    if (is_inside && equals != line.npos && !line.starts_with('#'))
      values[std::string(trimmed(line.substr(0, equals)))] = std::string(trimmed(line.substr(equals + 1)));
  }
  return values;
}

std::string aws_file(const char* variable, std::string_view name) {
  if (std::string path = environment(variable); !path.empty()) return path;
  return fmt::format("{}/.aws/{}", environment("HOME"), name);
}

std::string profile() {
  std::string name = environment("AWS_PROFILE");
  return name.empty() ? "default" : name;
}

std::string region() {
  if (std::string name = environment({"AWS_REGION", "AWS_DEFAULT_REGION"}); !name.empty()) return name;
  const std::string own = profile();
  const auto values =
      section_of(aws_file("AWS_CONFIG_FILE", "config"), own == "default" ? own : fmt::format("profile {}", own));
  const auto named = values.find("region");
  return named == values.end() ? "us-east-1" : named->second;
}

Result<std::optional<SigningKey>> signing_key() {
  SigningKey key{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                 environment("AWS_SESSION_TOKEN"), region()};
  std::string from = "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)";
  if (key.id.empty() && key.secret.empty()) {
    const std::string file = aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    auto values = section_of(file, profile());
    key.id = values["aws_access_key_id"];
    key.secret = values["aws_secret_access_key"];
    key.token = values["aws_session_token"];
    from = fmt::format("'{}'", file);
  }
  if (key.id.empty() && key.secret.empty()) return std::nullopt;  // a public bucket
  if (key.id.empty() || key.secret.empty())
    return usage_error(fmt::format("{} has only half of a key", from), "set both the id and the secret of the key");
  for (std::string* const secret : {&key.id, &key.secret, &key.token}) {
    BOOST_OUTCOME_TRY(*secret, checked_secret(std::move(*secret), from));
  }
  return key;
}

Result<Access> access_to_bucket(const Address& address) {
  Access access;
  const std::string where = region();
  if (where.empty() || where.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != where.npos)
    return usage_error(fmt::format("{} is not a valid region", quoted_name(where)),
                       "set AWS_REGION, for example us-east-1");
  BOOST_OUTCOME_TRY(const std::string endpoint, endpoint_of(environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}),
                                                            "AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL", ""));
  const std::string key = percent_encoded(address.path);
  if (!endpoint.empty())
    access.url = fmt::format("{}/{}/{}", endpoint, address.place, key);
  else if (address.place.find('.') == address.place.npos)
    access.url = fmt::format("https://{}.s3.{}.amazonaws.com/{}", address.place, where, key);
  else  // certificates do not cover names with dots
    access.url = fmt::format("https://s3.{}.amazonaws.com/{}/{}", where, address.place, key);
  BOOST_OUTCOME_TRY(access.key, signing_key());
  access.is_anonymous = !access.key;
  return access;
}

}  // namespace

Result<Access> access_to(const Address& address) {
  if (address.scheme == Scheme::kHttp) return Access{.url = address.path};
  if (address.scheme == Scheme::kS3) return access_to_bucket(address);
  return access_to_hub(
      fmt::format("/{}/resolve/{}/{}", address.place, address.revision, percent_encoded(address.path)));
}

Result<Access> access_to_list(const Address& address) {
  return access_to_hub(fmt::format("/api/models/{}/revision/{}", address.place, address.revision));
}

}  // namespace ggufmill::remote
