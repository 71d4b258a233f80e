// Scheme s3: objects in buckets, with signed requests.

#include <fmt/format.h>

#include <map>

#include "pipeline/core/text.h"
#include "pipeline/io/child_environment.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {
namespace {

constexpr const char *kConfigVariable = "AWS_CONFIG_FILE", *kCredentialsVariable = "AWS_SHARED_CREDENTIALS_FILE";

// Returns the values of one section of the text of an AWS configuration file ("[default]", "key = value").
std::map<std::string, std::string> section_of(std::string_view text, std::string_view section) {
  std::map<std::string, std::string> values;
  bool is_inside = false;
  while (!text.empty()) {
    const std::string_view line = trimmed(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), std::min(text.size(), text.find('\n')) + 1));
    if (line.starts_with('[')) is_inside = line == fmt::format("[{}]", section);
    const std::size_t equals = line.find('=');
    if (is_inside && equals != line.npos && !line.starts_with('#'))
      values[std::string(trimmed(line.substr(0, equals)))] = std::string(trimmed(line.substr(equals + 1)));
  }
  return values;
}

std::string aws_file(const char* variable, std::string_view name) {
  if (std::string path = environment(variable); !path.empty()) return path;
  return fmt::format("{}/.aws/{}", home_folder(), name);
}

std::string profile() {
  std::string name = environment("AWS_PROFILE");
  return name.empty() ? "default" : name;
}

Result<std::string> region() {
  if (std::string name = environment({"AWS_REGION", "AWS_DEFAULT_REGION"}); !name.empty()) return name;
  const std::string own = profile();
  BOOST_OUTCOME_TRY(const std::string text, text_of_file(aws_file(kConfigVariable, "config"), kConfigVariable));
  const auto values = section_of(text, own == "default" ? own : fmt::format("profile {}", own));
  const auto named = values.find("region");
  return named == values.end() ? std::string("us-east-1") : named->second;
}

Result<std::optional<SigningKey>> signing_key(const std::string& where) {
  SigningKey key{environment(kAwsKeyIdVariable), environment(kAwsKeyVariable), environment(kAwsSessionVariable), where};
  std::string from = "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)";
  if (key.id.empty() && key.secret.empty()) {
    const std::string file = aws_file(kCredentialsVariable, "credentials");
    BOOST_OUTCOME_TRY(const std::string text, text_of_file(file, kCredentialsVariable));
    auto values = section_of(text, profile());
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

class S3 final : public RemoteScheme {
 public:
  std::span<const std::string_view> names() const override { return kNames; }
  Result<Address> parse_address(std::string_view text) const override;
  Result<Access> access_to(const Address& address) const override;
  std::string how_to_get_in(const Access& access) const override {
    return access.is_anonymous ? "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"
                               : "check the bucket, the key's permissions, the region (AWS_REGION), and the clock";
  }

 private:
  static constexpr std::string_view kNames[] = {"s3"};
};

Result<Address> S3::parse_address(std::string_view text) const {
  constexpr std::string_view kHelp = "an address of a bucket is s3://BUCKET/KEY";
  const std::string_view rest = without_scheme(text);
  const std::size_t slash = rest.find('/');
  Address address{.scheme = this, .text = std::string(text)};
  address.place = rest.substr(0, slash);
  if (slash != rest.npos) address.path = rest.substr(slash + 1);
  if (!is_plain_name(address.place)) return bad_address(text, "does not name a bucket", kHelp);
  if (address.path.empty() || !is_plain_path(address.path)) return bad_address(text, "does not name an object", kHelp);
  return address;
}

Result<Access> S3::access_to(const Address& address) const {
  Access access;
  BOOST_OUTCOME_TRY(const std::string where, region());
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
  BOOST_OUTCOME_TRY(access.key, signing_key(where));
  access.is_anonymous = !access.key;
  return access;
}

}  // namespace

const RemoteScheme& s3() {
  static const S3 scheme;
  return scheme;
}

}  // namespace ggufmill::remote
