#pragma once
// SHA-256 (FIPS 180-4) as lower-case hex, for digests in tests.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace ggufmill {

// Computes a digest incrementally. Not thread-safe; throws std::runtime_error if OpenSSL does not support SHA-256.
class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  // Returns the digest of everything added. Nothing can be added afterwards.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

// Returns the digest of a file, read in pieces; throws std::runtime_error if it cannot be read.
std::string sha256_file(const std::string& path);

}  // namespace ggufmill
