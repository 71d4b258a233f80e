#pragma once
// Where the bytes of an address are asked for, and with which credentials: those of the usual environment variables and
// files, read anew for each source. What is secret is in Access alone, which is never shown.

#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/http.h"

namespace ggufmill::remote {

struct Access {
  std::string url{};
  std::vector<std::string> headers{};  // with the token, where there is one
  std::optional<SigningKey> key{};
  bool is_anonymous = true;
  bool token_withheld = false;  // there is one, and the endpoint is plain HTTP to another machine
};

// Exit code 2 for an endpoint that is no URL, and for credentials that cannot be such.
Result<Access> access_to(const Address& address);
// What the hub says of a model at a revision, a JSON document with its files.
Result<Access> access_to_list(const Address& address);

}  // namespace ggufmill::remote
