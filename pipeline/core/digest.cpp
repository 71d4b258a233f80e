#include "pipeline/core/digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <limits>
#include <new>

namespace ggufmill {
namespace {

EVP_MD_CTX* context_of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

const EVP_MD* function_of(DigestKind kind) {
  if (kind == DigestKind::kMd5) return EVP_md5();
  return kind == DigestKind::kSha1 ? EVP_sha1() : EVP_sha256();
}

}  // namespace

void Digest::Free::operator()(void* context) const { EVP_MD_CTX_free(context_of(context)); }

Digest::Digest(DigestKind kind) : context_(EVP_MD_CTX_new()) {
  // OpenSSL dereferences a null pointer if its default library context could not be created.
  if (!context_ || !OSSL_LIB_CTX_get0_global_default() ||
      EVP_DigestInit_ex(context_of(context_.get()), function_of(kind), nullptr) != 1)
    throw std::bad_alloc();
}

void Digest::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::vector<std::uint8_t> Digest::bytes() {
  std::vector<std::uint8_t> digest(EVP_MAX_MD_SIZE);
  unsigned length = 0;
  if (EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), &length) != 1) throw std::bad_alloc();
  digest.resize(length);
  return digest;
}

std::string Digest::hex() { return hex_of(bytes()); }

std::string Digest::base64() {
  const std::vector<std::uint8_t> digest = bytes();
  return base64_of({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string sha256_hex(std::string_view text) {
  Digest digest(DigestKind::kSha256);
  digest.add(text);
  return digest.hex();
}

std::string hex_of(std::span<const std::uint8_t> bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::string base64_of(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock appends a NUL
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

// EVP_DecodeBlock accepts white space at the ends and takes any "=" for a zero.
std::optional<std::string> bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0 || text.size() > std::numeric_limits<int>::max()) return {};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (text.substr(0, text.size() - padding).find_first_not_of(kDigits) != text.npos) return {};
  std::string bytes(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size())) < 0)
    return {};
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace ggufmill
