#include "pipeline/manifest/envelope.h"

#include "pipeline/core/digest.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Keys of these tests, by `openssl genpkey`.
constexpr const char* kEd25519 =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIFtodPzrgsZoFW4aI/lyucYleFB+/6N0L671GtzDSBvP\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* kEd25519Public =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAD2e6r0nGvu2EbT9b6rJLxcCtAn/iIKPdeybGOJU3WeE=\n"
    "-----END PUBLIC KEY-----\n";
constexpr const char* kEcdsa =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJpI5ImuM4S04VOPy\n"
    "bwDG0vOeiz3sgnHpeKU0IiKWEaqhRANCAAQe0WKsuAzkqx8UrWryRYWgatccVZ7F\n"
    "H2TDWtVbQ9LOyAAkr2JeKqzTHgDHT2MaSTNA2jlJGR3aUI0IcdIAviK8\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* kEcdsaPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHtFirLgM5KsfFK1q8kWFoGrXHFWe\n"
    "xR9kw1rVW0PSzsgAJK9iXiqs0x4Ax09jGkkzQNo5SRkd2lCNCHHSAL4ivA==\n"
    "-----END PUBLIC KEY-----\n";

// Envelopes of the payload {"_type":"x"} by securesystemslib 1.6.0, with the identifiers that it gives these keys.
constexpr const char* kByEd25519 =
    R"({"payload": "eyJfdHlwZSI6IngifQ==", "payloadType": "application/vnd.in-toto+json", "signatures": [{"keyid": "eb54741ed6125f358c07d3d162259f66f9f55253af69d2e287d37e49c53b227f", "sig": "yrPSyjiEUCVwfcnQpAZ8enI1OAUkrwDXzMz2ilQ6XIQdlrHc5m6vgM1pQUprymglGyi/c9snam//7szqZGUzBA=="}]})";
constexpr const char* kByEcdsa =
    R"({"payload": "eyJfdHlwZSI6IngifQ==", "payloadType": "application/vnd.in-toto+json", "signatures": [{"keyid": "a315ec91a2471992fe9661d48979088dc8d4ef3d15b2e08e7bd8a71c82b29b0a", "sig": "MEUCIQDGRRCmBuNNCwFUTXDydOSPGh2X9bX78amR9iRe7fWlfgIgI5BH/RSmK/hq/RL0QRtog5PHxJLx89GVk6bec9NRNzc="}]})";

class Keys {
 public:
  SigningKey secret(const char* text) { return value(SigningKey::read_private(file(text))); }
  SigningKey open(const char* text) { return value(SigningKey::read_public(file(text))); }
  std::string file(const std::string& text) {
    write_text(folder_.file("key.pem"), text);
    return folder_.file("key.pem");
  }

 private:
  static SigningKey value(Result<SigningKey> key) {
    if (!key) FAIL(render(key.error()));
    return std::move(key).value();
  }
  TempDir folder_;
};

Envelope opened(std::string_view text) {
  auto envelope = read_envelope(text, "a.jsonl");
  if (!envelope) FAIL(render(envelope.error()));
  return std::move(envelope).value();
}

std::string refusal_of_envelope(std::string_view text) {
  const auto envelope = read_envelope(text, "a.jsonl");
  REQUIRE(!envelope);
  CHECK(envelope.error().code == ExitCode::kBadInput);
  return envelope.error().what;
}

}  // namespace

TEST_CASE("envelopes of securesystemslib are verified, and their keys have the same identifiers") {
  Keys keys;
  const auto [secret, open, made] =
      GENERATE(std::tuple(kEd25519, kEd25519Public, kByEd25519), std::tuple(kEcdsa, kEcdsaPublic, kByEcdsa));
  const SigningKey key = keys.open(open);
  Envelope envelope = opened(made);
  CHECK(envelope.type == kStatementType);
  CHECK(envelope.payload == R"({"_type":"x"})");
  CHECK(envelope.signatures.front().key_id == key.id());
  CHECK(keys.secret(secret).id() == key.id());
  CHECK(is_signed_by(envelope, key));
  const Envelope valid = envelope;
  envelope.payload = R"({"_type":"y"})";
  CHECK(!is_signed_by(envelope, key));
  envelope = valid;
  envelope.type = "text/plain";
  CHECK(!is_signed_by(envelope, key));
  envelope = valid;
  envelope.signatures.front().signature.back() ^= 1;
  CHECK(!is_signed_by(envelope, key));
  envelope.signatures.front().signature.clear();
  CHECK(!is_signed_by(envelope, key));
  envelope.signatures.clear();
  CHECK(!is_signed_by(envelope, key));
}

TEST_CASE("what is signed is verified, with the right key alone") {
  Keys keys;
  const auto written = write_envelope(kStatementType, "payload", keys.secret(kEd25519));
  REQUIRE(written);
  CHECK(written.value().find('\n') == written.value().size() - 1);
  const Envelope envelope = opened(written.value());
  CHECK(envelope.payload == "payload");
  CHECK(is_signed_by(envelope, keys.open(kEd25519Public)));
  CHECK(!is_signed_by(envelope, keys.open(kEcdsaPublic)));
  const auto other = write_envelope(kStatementType, "payload", keys.secret(kEcdsa));
  REQUIRE(other);
  CHECK(is_signed_by(opened(other.value()), keys.open(kEcdsaPublic)));
}

TEST_CASE("bundles of Sigstore and statements without a signature are read") {
  CHECK(opened(std::string(R"({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": )") +
               kByEcdsa + "}")
            .signatures.size() == 1);
  CHECK(opened(R"({"_type":"x"})").signatures.empty());
}

TEST_CASE("what is no envelope is refused") {
  CHECK(refusal_of_envelope("{}") == "is not an attestation");
  CHECK(refusal_of_envelope("[]") == "is not an attestation");
  CHECK(refusal_of_envelope(R"({"payload": "AA=="})").find("payloadType") != std::string::npos);
  CHECK(refusal_of_envelope(R"({"payload": "A", "payloadType": "x", "signatures": []})").find("not Base64") !=
        std::string::npos);
  CHECK(refusal_of_envelope(R"({"payload": "", "payloadType": "x", "signatures": []})").find("empty") !=
        std::string::npos);
  CHECK(refusal_of_envelope(R"({"payload": "", "payloadType": "x", "signatures": [1]})").find("sig") !=
        std::string::npos);
}

TEST_CASE("what is no key of the right kind is refused, and the error says what to do") {
  Keys keys;
  const auto secret = [&](const std::string& text) { return SigningKey::read_private(keys.file(text)).error(); };
  const auto open = [&](const std::string& text) { return SigningKey::read_public(keys.file(text)).error(); };
  CHECK(secret(kEd25519Public).what == "is a public key, and signing takes the private one");
  CHECK(open(kEcdsa).what == "is a private key, and a signature is checked with the public one");
  CHECK(secret("nothing").what == "is no private key in PEM");
  CHECK(open("").what == "is no public key in PEM");
  // An RSA key of 512 bits, of which only the kind counts.
  CHECK(open("-----BEGIN PUBLIC KEY-----\n"
             "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALqc3mRo9gqjeNMH7kmOyu6J0JFqxnTT\n"
             "T6C0rdLmPcHPYRZW1Pbz7v7nOXTPjuzH0ZBK7C0GkfxfVjMaUVuZMTkCAwEAAQ==\n"
             "-----END PUBLIC KEY-----\n")
            .what == "is neither an Ed25519 key nor an ECDSA key on P-256 or P-384");
  for (const Error& error : {secret("nothing"), open("nothing")}) {
    CHECK(error.code == ExitCode::kBadInput);
    CHECK(error.help.find("openssl") != std::string::npos);
  }
}
