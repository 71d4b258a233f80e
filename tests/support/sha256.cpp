#include "tests/support/sha256.h"

#include <openssl/evp.h>

#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace ggufmill {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL has no SHA-256");
  }
}

void Sha256::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) throw std::runtime_error("SHA-256 failed");
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) throw std::runtime_error("SHA-256 failed");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string sha256_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  Sha256 hash;
  std::vector<char> piece(1 << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    hash.add(std::as_bytes(std::span(piece.data(), static_cast<std::size_t>(file.gcount()))));
  }
  if (file.bad()) throw std::runtime_error("cannot read " + path);
  return hash.hex();
}

}  // namespace ggufmill
