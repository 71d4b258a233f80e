#pragma once
// Digests of bytes by OpenSSL, and bytes as text.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

enum class DigestKind { kMd5, kSha1, kSha256 };

// Computes a digest. Throws std::bad_alloc if the system is out of memory. Not thread-safe.
class Digest {
 public:
  explicit Digest(DigestKind kind);
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  // Return the digest of everything that was added; one of them may be called, once.
  std::vector<std::uint8_t> bytes();
  std::string hex();     // lowercase
  std::string base64();  // with padding

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;  // EVP_MD_CTX
};

// Returns the SHA-256 of a text in lowercase hexadecimal digits.
std::string sha256_hex(std::string_view text);
// Returns bytes in lowercase hexadecimal digits.
std::string hex_of(std::span<const std::uint8_t> bytes);
// Returns the Base64 (RFC 4648, 4) of bytes, with padding.
std::string base64_of(std::string_view bytes);
// Returns the bytes of such a text; nullopt if it is not Base64 with padding.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace ggufmill
