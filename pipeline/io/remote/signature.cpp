#include "pipeline/io/remote/signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <map>
#include <new>

#include "pipeline/io/remote/address.h"

namespace ggufmill::remote {
namespace {

using Digest = std::vector<unsigned char>;

EVP_MD_CTX* context_of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

Digest hmac(std::span<const unsigned char> key, std::string_view text) {
  Digest digest(EVP_MAX_MD_SIZE);
  unsigned length = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
            text.size(), digest.data(), &length))
    throw std::bad_alloc();
  digest.resize(length);
  return digest;
}

std::string hex(std::span<const unsigned char> bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string time_text(std::time_t when, const char* format) {
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  // OpenSSL dereferences a null pointer if its default library context could not be created.
  if (!OSSL_LIB_CTX_get0_global_default() ||
      EVP_Digest(text.data(), text.size(), digest, &length, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return hex({digest, length});
}

void Md5::Free::operator()(void* context) const { EVP_MD_CTX_free(context_of(context)); }

Md5::Md5() : context_(EVP_MD_CTX_new()) {
  if (!context_ || !OSSL_LIB_CTX_get0_global_default() ||
      EVP_DigestInit_ex(context_of(context_.get()), EVP_md5(), nullptr) != 1)
    throw std::bad_alloc();
}

void Md5::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::string Md5::base64() {
  unsigned char digest[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_DigestFinal_ex(context_of(context_.get()), digest, &length) != 1) throw std::bad_alloc();
  const int written = EVP_EncodeBlock(text, digest, static_cast<int>(length));
  return std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(written));
}

std::vector<std::string> signing_headers(std::string_view method, std::string_view url,
                                         const std::vector<std::string>& headers, std::string_view body_hash,
                                         const SigningKey& key, std::time_t now) {
  const std::string_view rest = without_scheme(url);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?"));
  const std::string_view target = rest.substr(host.size());
  const std::size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  const std::string_view query = question == target.npos ? std::string_view() : target.substr(question + 1);
  const std::string time = time_text(now, "%Y%m%dT%H%M%SZ"), date = time.substr(0, 8);

  std::vector<std::string> added = {fmt::format("Host: {}", host), fmt::format("X-Amz-Content-Sha256: {}", body_hash),
                                    fmt::format("X-Amz-Date: {}", time)};
  if (!key.token.empty()) added.push_back("X-Amz-Security-Token: " + key.token);
  std::map<std::string, std::string> sorted;
  for (const std::vector<std::string>* const list : {&headers, &std::as_const(added)})
    for (const std::string& header : *list) {
      const std::size_t colon = header.find(':');
      sorted[lower(header.substr(0, colon))] = trimmed(std::string_view(header).substr(colon + 1));
    }
  std::string names, lines;
  for (const auto& [name, value] : sorted) {
    names += (names.empty() ? "" : ";") + name;
    lines += fmt::format("{}:{}\n", name, value);
  }
  const std::string request =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", method, path.empty() ? "/" : path, query, lines, names, body_hash);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", date, key.region);
  const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, sha256_hex(request));

  const std::string secret = "AWS4" + key.secret;
  Digest mac(secret.begin(), secret.end());
  for (const std::string_view part : {std::string_view(date), std::string_view(key.region), std::string_view("s3"),
                                      std::string_view("aws4_request"), std::string_view(text)})
    mac = hmac(mac, part);
  added.push_back(fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                              key.id, scope, names, hex(mac)));
  return added;
}

}  // namespace ggufmill::remote
