#include "pipeline/io/remote/signature.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <map>
#include <new>

#include "pipeline/core/digest.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"

namespace ggufmill::remote {
namespace {

using Mac = std::vector<unsigned char>;

Mac hmac(std::span<const unsigned char> key, std::string_view text) {
  Mac digest(EVP_MAX_MD_SIZE);
  unsigned length = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
            text.size(), digest.data(), &length))
    throw std::bad_alloc();
  digest.resize(length);
  return digest;
}

}  // namespace

std::vector<std::string> signing_headers(std::string_view method, std::string_view url,
                                         const std::vector<std::string>& headers, std::string_view body_hash,
                                         const SigningKey& key, std::time_t now) {
  const std::string_view rest = without_scheme(url);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?"));
  const std::string_view target = rest.substr(host.size());
  const std::size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  const std::string_view query = question == target.npos ? std::string_view() : target.substr(question + 1);
  const std::string time = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(now)), date = time.substr(0, 8);

  std::vector<std::string> added = {fmt::format("Host: {}", host), fmt::format("X-Amz-Content-Sha256: {}", body_hash),
                                    fmt::format("X-Amz-Date: {}", time)};
  if (!key.token.empty()) added.push_back("X-Amz-Security-Token: " + key.token);
  std::map<std::string, std::string> sorted;
  for (const std::vector<std::string>* const list : {&headers, &std::as_const(added)})
    for (const std::string& header : *list) {
      const std::size_t colon = header.find(':');
      sorted[lower_case(header.substr(0, colon))] = trimmed(std::string_view(header).substr(colon + 1));
    }
  std::string names, lines;
  for (const auto& [name, value] : sorted) {
    names += (names.empty() ? "" : ";") + name;
    lines += fmt::format("{}:{}\n", name, value);
  }
  const std::string request =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", method, path.empty() ? "/" : path, query, lines, names, body_hash);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", date, key.region, key.service);
  const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, sha256_hex(request));

  const std::string secret = "AWS4" + key.secret;
  Mac mac(secret.begin(), secret.end());
  for (const std::string_view part :
       {std::string_view(date), std::string_view(key.region), std::string_view(key.service),
        std::string_view("aws4_request"), std::string_view(text)})
    mac = hmac(mac, part);
  added.push_back(fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                              key.id, scope, names, hex_of(mac)));
  return added;
}

}  // namespace ggufmill::remote
