#pragma once
// Signed statements: envelopes of DSSE (https://github.com/secure-systems-lab/dsse, v1.0.2), which in-toto, SLSA and
// Sigstore use.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/manifest/signing_key.h"

namespace ggufmill {

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
