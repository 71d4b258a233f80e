#pragma once
// Addresses of sources, parsed.

#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill::remote {

enum class Scheme { kHttp, kHub, kS3 };

// Nothing secret is in an address: what could be is refused, so that addresses may stand in messages, plans and
// reports.
struct Address {
  Scheme scheme = Scheme::kHttp;
  std::string text{};      // as it is shown, and parsed again
  std::string place{};     // kHub: "ORG/NAME"; kS3: the bucket; kHttp: empty
  std::string revision{};  // kHub: branch, tag or commit
  std::string path{};      // kHub: the file, empty for all of it; kS3: the key; kHttp: the whole URL

  // Of the hub: whether the revision is a commit, which cannot move.
  bool is_pinned() const;
  // Of the hub: the same of another revision, or another file.
  Address at(std::string_view commit) const;
  Address file(std::string_view name) const;
};

// Exit code 2, saying what is wrong: another scheme, a user or password, a query (which may be a key) or fragment, what
// is no name, more than 4096 bytes.
Result<Address> parse_address(std::string_view text);

// As in the path of a URL: all bytes but letters, digits, "-._~" and "/" as %XX.
std::string percent_encoded(std::string_view path);

}  // namespace ggufmill::remote
