// Scheme https: files on any web server, without credentials.

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {
namespace {

class Web final : public RemoteScheme {
 public:
  std::span<const std::string_view> names() const override { return kNames; }
  bool is_named(std::string_view scheme) const override {
    return std::ranges::any_of(kNames, [&](std::string_view name) { return same_word(scheme, name); });
  }
  Result<Address> parse_address(std::string_view text) const override;
  Result<Access> access_to(const Address& address) const override { return Access{.url = address.path}; }
  std::string how_to_get_in(const Access&) const override {
    return "credentials are not sent to https:// addresses: write hf://ORG/NAME for the hub, s3://BUCKET/KEY for a "
           "bucket";
  }

 private:
  static constexpr std::string_view kNames[] = {"https", "http"};
};

Result<Address> Web::parse_address(std::string_view text) const {
  const std::string_view rest = without_scheme(text);
  const std::string_view host = rest.substr(0, rest.find('/'));
  if (without_secrets(text) != text.substr(0, text.find_first_of("?#")))
    return bad_address(text, "contains a user or a password",
                       "remove them: addresses are written to plans and reports");
  if (text.find('?') != text.npos)
    return bad_address(text, "has a query, which may contain a key",
                       "give the plain address: hf:// for the hub, s3:// for a bucket, with keys from the environment");
  if (text.find('#') != text.npos) return bad_address(text, "has a fragment", "remove '#' and what follows");
  if (host.empty()) return bad_address(text, "does not name a host", "write https://HOST/FILE");
  if (std::ranges::any_of(text, [](char c) { return c <= 0x20 || c >= 0x7f || c == '\\' || c == '"'; }))
    return bad_address(text, "contains characters that are not valid in a URL", "write them as %XX");
  Address address{.scheme = this, .text = std::string(text), .path = std::string(text)};
  return address;
}

}  // namespace

const RemoteScheme& web() {
  static const Web scheme;
  return scheme;
}

}  // namespace ggufmill::remote
