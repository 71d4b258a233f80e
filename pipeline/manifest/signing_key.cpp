#include "pipeline/manifest/envelope.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/core/digest.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxKeyBytes = 64 << 10;
constexpr const char* kMakeKey =
    "make one: `openssl genpkey -algorithm ed25519 -out KEY.pem` and `openssl pkey -in KEY.pem -pubout -out "
    "PUBLIC.pem`";

struct FreeOpenSsl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Bio = std::unique_ptr<BIO, FreeOpenSsl>;
using Hashing = std::unique_ptr<EVP_MD_CTX, FreeOpenSsl>;

EVP_PKEY* key_of(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

// A kind of key: its names in descriptions of keys, and the digest that is signed.
struct KeyKind {
  const char* group;  // of an elliptic curve; null for Ed25519
  const char* type;
  const char* scheme;
  const EVP_MD* (*digest)();
};
constexpr KeyKind kKinds[] = {{nullptr, "ed25519", "ed25519", nullptr},
                              {"prime256v1", "ecdsa", "ecdsa-sha2-nistp256", EVP_sha256},
                              {"secp384r1", "ecdsa", "ecdsa-sha2-nistp384", EVP_sha384}};

const KeyKind* kind_of(const EVP_PKEY* key) {
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) return &kKinds[0];
  char group[64] = {};
  std::size_t length = 0;
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC || EVP_PKEY_get_group_name(key, group, sizeof group, &length) != 1)
    return nullptr;
  for (const KeyKind& kind : kKinds)
    if (kind.group && std::string_view(group, length) == kind.group) return &kind;
  return nullptr;
}

// Returns the public key as a description has it: the bytes of Ed25519 in hexadecimal digits, or PEM.
std::string public_text(EVP_PKEY* key, const KeyKind& kind) {
  if (!kind.group) {
    std::vector<std::uint8_t> bytes(32);
    std::size_t length = bytes.size();
    if (EVP_PKEY_get_raw_public_key(key, bytes.data(), &length) != 1) return {};
    return hex_of(bytes);
  }
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PUBKEY(bio.get(), key) != 1) return {};
  char* text = nullptr;
  const auto length = static_cast<std::size_t>(BIO_get_mem_data(bio.get(), &text));
  return {text, length};
}

// Never asks the terminal for a password; records that one is needed.
int refuse_password(char* /*buffer*/, int /*size*/, int /*is_writing*/, void* is_asked) {
  *static_cast<bool*>(is_asked) = true;
  return -1;
}

// Returns the last errors of OpenSSL to a state in which others see none.
struct ClearedErrors {
  ClearedErrors() { ERR_clear_error(); }
  ~ClearedErrors() { ERR_clear_error(); }
};

using ReadKey = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

struct ReadResult {
  std::shared_ptr<void> key;
  bool needs_password = false;
};
ReadResult read_key(const std::string& text, ReadKey read) {
  const ClearedErrors cleared;
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!bio) throw std::bad_alloc();
  ReadResult result;
  EVP_PKEY* const key = read(bio.get(), nullptr, refuse_password, &result.needs_password);
  result.key = std::shared_ptr<void>(key, [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); });
  return result;
}

}  // namespace

Result<SigningKey> SigningKey::of(std::shared_ptr<void> key, const std::string& path) {
  const KeyKind* const kind = kind_of(key_of(key));
  if (!kind) return input_error(path, "is neither an Ed25519 key nor an ECDSA key on P-256 or P-384", kMakeKey);
  // The canonical form of JSON: in alphabetical order, with line breaks as they are.
  const std::string described = fmt::format(R"({{"keytype":"{}","keyval":{{"public":"{}"}},"scheme":"{}"}})",
                                            kind->type, public_text(key_of(key), *kind), kind->scheme);
  return SigningKey(std::move(key), sha256_hex(described));
}

Result<SigningKey> SigningKey::read_private(const std::string& path) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxKeyBytes));
  const ReadResult read = read_key(text, PEM_read_bio_PrivateKey);
  if (read.key) return of(read.key, path);
  if (read.needs_password)
    return input_error(
        path, "is protected by a password",
        "`openssl pkey -in KEY.pem -out PLAIN.pem` writes it without, in a folder that only you can read");
  const bool is_public = read_key(text, PEM_read_bio_PUBKEY).key != nullptr;
  return input_error(path,
                     is_public ? "is a public key, and signing takes the private one" : "is no private key in PEM",
                     is_public ? "give the file that `openssl genpkey` wrote" : kMakeKey);
}

Result<SigningKey> SigningKey::read_public(const std::string& path) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxKeyBytes));
  const ReadResult read = read_key(text, PEM_read_bio_PUBKEY);
  if (read.key) return of(read.key, path);
  const ReadResult secret = read_key(text, PEM_read_bio_PrivateKey);
  const bool is_private = secret.key || secret.needs_password;
  return input_error(
      path, is_private ? "is a private key, and a signature is checked with the public one" : "is no public key in PEM",
      "`openssl pkey -in KEY.pem -pubout -out PUBLIC.pem` writes the public key of a private one");
}

Result<std::string> SigningKey::sign(std::string_view message) const {
  const ClearedErrors cleared;
  const KeyKind& kind = *kind_of(key_of(key_));
  const Hashing context(EVP_MD_CTX_new());
  const auto* const bytes = reinterpret_cast<const unsigned char*>(message.data());
  std::size_t length = 0;
  if (context &&
      EVP_DigestSignInit(context.get(), nullptr, kind.digest ? kind.digest() : nullptr, nullptr, key_of(key_)) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &length, bytes, message.size()) == 1) {
    std::string signature(length, '\0');
    if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length, bytes,
                       message.size()) == 1) {
      signature.resize(length);
      return signature;
    }
  }
  return Error{ExitCode::kInternal, "", "OpenSSL could not sign"};
}

bool SigningKey::verifies(std::string_view message, std::string_view signature) const {
  const ClearedErrors cleared;
  const KeyKind& kind = *kind_of(key_of(key_));
  const Hashing context(EVP_MD_CTX_new());
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, kind.digest ? kind.digest() : nullptr, nullptr, key_of(key_)) ==
             1 &&
         EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
}

}  // namespace ggufmill
