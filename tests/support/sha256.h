#pragma once
// SHA-256 (FIPS 180-4) as lower-case hex, for figures in tests.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace ggufmill {

// Incremental. Not thread-safe; throws std::runtime_error when OpenSSL has no SHA-256.
class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  // The digest of everything added. Nothing can be added after it.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

// Of a whole file, read in pieces; throws std::runtime_error when it cannot be read.
std::string sha256_file(const std::string& path);

}  // namespace ggufmill
