#pragma once
// Parsed addresses of sources.

#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill::remote {

enum class Scheme { kHttp, kHub, kS3 };

// An address contains no secrets: parts that could be secret are refused, so that addresses can appear in messages,
// plans and reports.
struct Address {
  Scheme scheme = Scheme::kHttp;
  std::string text{};      // as printed; can be parsed again
  std::string place{};     // kHub: "ORG/NAME"; kS3: the bucket; kHttp: empty
  std::string revision{};  // kHub: branch, tag or commit
  std::string path{};      // kHub: the file, empty for the whole model; kS3: the key; kHttp: the whole URL

  // Returns true if the content cannot move to another version: for the hub, if the revision is a commit; always true
  // for other schemes.
  bool is_pinned() const;
  // For the hub: return the same address with another revision, or another file.
  Address at(std::string_view commit) const;
  Address file(std::string_view name) const;
};

// Exit code 2, with the reason, for an unknown scheme, a user or password, a query (which may be a key) or fragment, an
// invalid name, or more than 4096 bytes.
Result<Address> parse_address(std::string_view text);

// Encodes for the path of a URL: all bytes except letters, digits, "-._~" and "/" become %XX.
std::string percent_encoded(std::string_view path);

}  // namespace ggufmill::remote
