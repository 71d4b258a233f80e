#pragma once
// Signed statements: envelopes of DSSE (https://github.com/secure-systems-lab/dsse, v1.0.2), which in-toto, SLSA and
// Sigstore use; and the keys that sign and verify them: Ed25519, and ECDSA on the curves P-256 (with SHA-256) and P-384
// (with SHA-384), by OpenSSL, from PEM files as `openssl genpkey` and `openssl pkey -pubout` write them.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// A public key, or with is_private() the private key that it belongs to. Immutable; can be copied and shared between
// threads.
class SigningKey {
 public:
  // Reads a key: the private one (PKCS #8, SEC 1), or the public one (SubjectPublicKeyInfo). Fails with exit code 4 if
  // the file has no such key, if a password protects it, or if it is of another kind.
  static Result<SigningKey> read_private(const std::string& path);
  static Result<SigningKey> read_public(const std::string& path);

  // Returns the name of the key in envelopes, which is that of TUF and in-toto: the SHA-256 of a description of the
  // public key.
  const std::string& id() const { return id_; }
  // Returns the signature of a message. Requires a private key.
  Result<std::string> sign(std::string_view message) const;
  bool verifies(std::string_view message, std::string_view signature) const;

 private:
  SigningKey(std::shared_ptr<void> key, std::string id) : key_(std::move(key)), id_(std::move(id)) {}
  static Result<SigningKey> of(std::shared_ptr<void> key, const std::string& path);

  std::shared_ptr<void> key_;  // EVP_PKEY
  std::string id_;
};

struct EnvelopeSignature {
  std::string key_id;  // may be empty
  std::string signature;
};

struct Envelope {
  std::string type;  // of the payload: "application/vnd.in-toto+json"
  std::string payload;
  std::vector<EnvelopeSignature> signatures{};  // empty: the file is the statement itself
};

inline constexpr std::string_view kStatementType = "application/vnd.in-toto+json";

// Returns the payload with a signature, as one line of JSON.
Result<std::string> write_envelope(std::string_view type, std::string_view payload, const SigningKey& key);

// Reads an envelope, a bundle of Sigstore with one, or a statement that nobody has signed. Does not check signatures.
// Exit code 4.
Result<Envelope> read_envelope(std::string_view text, const std::string& path);

// Returns true if one of the signatures is that of this key.
bool is_signed_by(const Envelope& envelope, const SigningKey& key);

}  // namespace ggufmill
