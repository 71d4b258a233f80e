#include "pipeline/io/remote/address.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {
namespace {

std::string hub_text(const Address& address) {
  std::string text = fmt::format("hf://{}@{}", address.place, address.revision);
  if (!address.type.empty()) text += ":" + address.type;
  if (!address.path.empty()) text += "/" + address.path;
  return text;
}

}  // namespace

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

Error bad_address(std::string_view text, std::string_view why, std::string_view help) {
  return usage_error(fmt::format("the address {} {}", quoted_name(without_secrets(text)), why), std::string(help));
}

std::string without_secrets(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == text.npos) return std::string(text);
  const std::string_view start = text.substr(0, scheme + 3);
  std::string_view rest = text.substr(start.size());
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const std::string_view after_colon = authority.substr(std::min(authority.size(), authority.find(':')));
  // Text that is not a port may be the beginning of a password, which can contain any character.
  const bool is_port = authority.starts_with('[') || after_colon.find_first_not_of(":0123456789") == after_colon.npos;
  const std::size_t user = is_port ? authority.rfind('@') : rest.rfind('@');
  const std::string_view masked = user == rest.npos ? "" : "...";
  if (user != rest.npos) rest.remove_prefix(user);
  return fmt::format("{}{}{}", start, masked, rest.substr(0, rest.find_first_of("?#")));
}

std::string_view without_scheme(std::string_view text) {
  return text.substr(std::min(text.size(), text.find("://") + 3));
}

bool is_plain_path(std::string_view path) {
  if (path.find('\0') != path.npos) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && std::ranges::all_of(name, is_plain);
}

bool Address::is_pinned() const {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return !scheme->has_revisions() || (revision.size() == 40 && std::ranges::all_of(revision, is_digit));
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
  address.type.clear();
  address.text = hub_text(address);
  return address;
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
