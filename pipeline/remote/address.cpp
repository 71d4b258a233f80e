#include "pipeline/remote/address.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kLongest = 4096;
constexpr std::string_view kMain = "main";
constexpr std::string_view kHubHelp = "an address of the hub is hf://ORG/NAME@REVISION or hf://ORG/NAME@REVISION/FILE";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

Error refused(std::string_view text, std::string_view why, std::string_view help) {
  return usage_error(fmt::format("the address {} {}", quoted_name(text), why), std::string(help));
}

// Removes the user, password and query, which may be secret.
std::string without_secrets(std::string_view text) {
  text = text.substr(0, text.find_first_of("?#"));
  const std::size_t begin = text.find("://") + 3;
  const std::string_view authority = text.substr(begin, text.find('/', begin) - begin);
  const std::size_t user = authority.rfind('@');
  if (user == authority.npos) return std::string(text);
  return fmt::format("{}...{}", text.substr(0, begin), text.substr(begin + user));
}

// Returns true if `path` consists of segments none of which is empty, "." or "..".
bool is_path(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && std::ranges::all_of(name, is_plain);
}

std::string hub_text(const Address& address) {
  std::string text = fmt::format("hf://{}@{}", address.place, address.revision);
  if (!address.path.empty()) text += "/" + address.path;
  return text;
}

Result<Address> parse_http(std::string_view text, std::string_view shown) {
  const std::size_t begin = text.find("://") + 3;
  const std::string_view rest = text.substr(begin);
  const std::string_view host = rest.substr(0, rest.find('/'));
  if (host.find('@') != host.npos)
    return refused(shown, "contains a user or a password", "remove them: addresses are written to plans and reports");
  if (text.find('?') != text.npos)
    return refused(shown, "has a query, which may contain a key",
                   "give the plain address: hf:// for the hub, s3:// for a bucket, with keys from the environment");
  if (text.find('#') != text.npos) return refused(shown, "has a fragment", "remove '#' and what follows");
  if (host.empty()) return refused(shown, "does not name a host", "write https://HOST/FILE");
  if (std::ranges::any_of(text, [](char c) { return c <= 0x20 || c >= 0x7f || c == '\\' || c == '"'; }))
    return refused(shown, "contains characters that are not valid in a URL", "write them as %XX");
  Address address{.scheme = Scheme::kHttp, .text = std::string(text), .path = std::string(text)};
  return address;
}

Result<Address> parse_hub(std::string_view text, std::string_view rest) {
  if (rest.starts_with("models/")) rest.remove_prefix(7);
  if (rest.starts_with("datasets/") || rest.starts_with("spaces/"))
    return refused(text, "does not name a model", kHubHelp);
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos) return refused(text, "does not name an organization and a model", kHubHelp);
  std::size_t end = rest.find('/', slash + 1);
  const std::string_view repository = rest.substr(0, end);
  const std::size_t at = repository.find('@');
  Address address{.scheme = Scheme::kHub};
  address.place = repository.substr(0, at);
  address.revision = at == repository.npos ? kMain : repository.substr(at + 1);
  if (end != rest.npos) address.path = rest.substr(end + 1);
  while (address.path.ends_with('/')) address.path.pop_back();
  const std::string_view organization = std::string_view(address.place).substr(0, slash);
  const std::string_view name = std::string_view(address.place).substr(std::min(slash + 1, address.place.size()));
  if (!is_name(organization) || !is_name(name))
    return refused(text, "does not name an organization and a model", kHubHelp);
  const auto is_of_revision = [](char c) { return is_plain(c) || c == '%'; };
  if (address.revision.empty() || !std::ranges::all_of(address.revision, is_of_revision))
    return refused(text, "does not have a valid revision",
                   "a revision is a branch, a tag, or a commit; write / in it as %2F: @refs%2Fpr%2F1");
  if (!address.path.empty() && (!is_path(address.path) || address.path.find('\0') != std::string::npos))
    return refused(text, "does not name a file", kHubHelp);
  address.text = hub_text(address);
  return address;
}

Result<Address> parse_s3(std::string_view text, std::string_view rest) {
  constexpr std::string_view kHelp = "an address of a bucket is s3://BUCKET/KEY";
  const std::size_t slash = rest.find('/');
  Address address{.scheme = Scheme::kS3, .text = std::string(text)};
  address.place = rest.substr(0, slash);
  if (slash != rest.npos) address.path = rest.substr(slash + 1);
  if (!is_name(address.place)) return refused(text, "does not name a bucket", kHelp);
  if (address.path.empty() || !is_path(address.path) || address.path.find('\0') != std::string::npos)
    return refused(text, "does not name an object", kHelp);
  return address;
}

}  // namespace

bool Address::is_pinned() const {
  return scheme != Scheme::kHub || (revision.size() == 40 && std::ranges::all_of(revision, [](char c) {
                                      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                                    }));
}

Address Address::at(std::string_view commit) const {
  Address address = *this;
  address.revision = commit;
  address.text = hub_text(address);
  return address;
}

Address Address::file(std::string_view name) const {
  Address address = *this;
  address.path = name;
  address.text = hub_text(address);
  return address;
}

Result<Address> parse_address(std::string_view text) {
  const std::string shown = without_secrets(text);
  if (text.size() > kLongest) return refused(shown, fmt::format("is longer than {} bytes", kLongest), "");
  const std::size_t end = text.find("://");
  const std::string_view scheme = text.substr(0, end), rest = text.substr(std::min(text.size(), end + 3));
  if (same_word(scheme, "https") || same_word(scheme, "http")) return parse_http(text, shown);
  if (scheme == "hf") return parse_hub(text, rest);
  if (scheme == "s3") return parse_s3(text, rest);
  return refused(shown, fmt::format("has the unknown scheme {}", quoted_name(scheme)),
                 scheme == "file" ? "write only the path" : "supported schemes: https, http, hf, s3");
}

std::string percent_encoded(std::string_view path) {
  std::string out;
  for (const char c : path)
    if (is_plain(c) || c == '/')
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace ggufmill::remote
