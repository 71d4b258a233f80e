#pragma once
// Keys that sign and verify: Ed25519, and ECDSA on the curves P-256 (with SHA-256) and P-384 (with SHA-384), by
// OpenSSL, from PEM files as `openssl genpkey` and `openssl pkey -pubout` write them.

#include <memory>
#include <string>
#include <string_view>

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

}  // namespace ggufmill
