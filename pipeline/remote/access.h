#pragma once
// Maps an address to its URL and credentials. Credentials come from the usual environment variables and files, which
// are read anew for each source. Secrets exist in Access only, which is never printed.

#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/http.h"

namespace ggufmill::remote {

struct Access {
  std::string url{};
  std::vector<std::string> headers{};  // includes the token, if there is one
  std::optional<SigningKey> key{};
  bool is_anonymous = true;
  bool token_withheld = false;  // a token exists, but the endpoint is plain HTTP to another machine
};

// Exit code 2 if an endpoint is not a URL, or if credentials are malformed.
Result<Access> access_to(const Address& address);
// Returns access to the hub's description of a model at a revision: a JSON document that lists its files.
Result<Access> access_to_list(const Address& address);

}  // namespace ggufmill::remote
