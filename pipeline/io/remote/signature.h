#pragma once
// Signatures and checksums of S3 requests.

#include <cstddef>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill::remote {

// Key with which requests to S3, or to another service of AWS, are signed.
struct SigningKey {
  std::string id, secret, token;  // token: for temporary keys only, else empty
  std::string region;
  std::string service{"s3"};
};

// Instead of the SHA-256 of a body that is not signed.
inline constexpr std::string_view kUnsignedBody = "UNSIGNED-PAYLOAD";

// Returns the headers ("Name: value") that sign a request with AWS signature version 4: Host, the time, the hash of the
// body, the session token, and Authorization. All of `headers` are signed as well. The path and the query of `url` must
// be encoded and the query sorted by name; `body_hash` is the body's sha256_hex(), or kUnsignedBody. Source: Amazon S3
// API Reference, "Signature Calculations for the Authorization Header".
std::vector<std::string> signing_headers(std::string_view method, std::string_view url,
                                         const std::vector<std::string>& headers, std::string_view body_hash,
                                         const SigningKey& key, std::time_t now);

}  // namespace ggufmill::remote
