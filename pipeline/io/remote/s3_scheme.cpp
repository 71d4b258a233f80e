// Scheme s3: objects in buckets, with signed requests.

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/aws_files.h"
#include "pipeline/io/remote/aws_keys.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {
namespace {

// Returns the region that the user has set: in the environment, else in the profile.
std::string region_of(const AwsFiles& files) {
  if (std::string name = environment({"AWS_REGION", "AWS_DEFAULT_REGION"}); !name.empty()) return name;
  const std::string named = value_of(files.config(AwsFiles::chosen_profile()), "region");
  return named.empty() ? "us-east-1" : named;
}

class S3 final : public RemoteScheme {
 public:
  std::span<const std::string_view> names() const override { return kNames; }
  Result<Address> parse_address(std::string_view text) const override;
  Result<Access> access_to(const Address& address) const override;
  std::string how_to_get_in(const Access& access) const override {
    return access.is_anonymous
               ? std::string("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials")
               : fmt::format(
                     "check the bucket, the permissions of the key (of {}), the region (AWS_REGION), and the "
                     "clock",
                     access.keys->from());
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
  BOOST_OUTCOME_TRY(const AwsFiles files, AwsFiles::read());
  if (const std::string profile = AwsFiles::chosen_profile(); profile != "default" && !files.has_profile(profile))
    return usage_error(fmt::format("there is no profile {} (AWS_PROFILE)", quoted_name(profile)),
                       fmt::format("add it to '{}', or unset AWS_PROFILE", files.config_path()));
  const std::string where = region_of(files);
  if (where.empty() || where.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != where.npos)
    return usage_error(fmt::format("{} is not a valid region", quoted_name(where)),
                       "set AWS_REGION, for example us-east-1");
  const AwsEndpoint set = endpoint_of_service(files, "s3");
  BOOST_OUTCOME_TRY(const std::string endpoint, endpoint_of(set.url, set.from, ""));
  const std::string key = percent_encoded(address.path);
  if (!endpoint.empty())
    access.url = fmt::format("{}/{}/{}", endpoint, address.place, key);
  else if (address.place.find('.') == address.place.npos)
    access.url = fmt::format("https://{}.s3.{}.{}/{}", address.place, where, domain_of(where), key);
  else  // certificates do not cover names with dots
    access.url = fmt::format("https://s3.{}.{}/{}/{}", where, domain_of(where), address.place, key);
  BOOST_OUTCOME_TRY(access.keys, AwsKeys::find(files, where));
  access.is_anonymous = !access.keys;
  return access;
}

}  // namespace

const RemoteScheme& s3() {
  static const S3 scheme;
  return scheme;
}

}  // namespace ggufmill::remote
