#include "pipeline/manifest/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/core/digest.h"
#include "pipeline/core/json.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// Returns what is signed: the type and the payload, each with its length, so that neither can be taken for the other.
std::string signed_text(std::string_view type, std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", type.size(), type, payload.size(), payload);
}

std::string needed_bytes(const json::value& value, std::string_view name) {
  auto bytes = bytes_of_base64(needed_text(value, name));
  if (!bytes) throw InvalidJson{fmt::format("'{}' is not Base64", name)};
  return std::move(*bytes);
}

Envelope envelope_of(const json::value& value) {
  Envelope envelope{needed_text(value, "payloadType"), needed_bytes(value, "payload")};
  for (const json::value& each : needed_list(value, "signatures"))
    envelope.signatures.push_back({std::string(json_string(each, "keyid").value_or("")), needed_bytes(each, "sig")});
  if (envelope.signatures.empty()) throw InvalidJson{"'signatures' is empty"};
  return envelope;
}

}  // namespace

Result<std::string> write_envelope(std::string_view type, std::string_view payload, const SigningKey& key) {
  BOOST_OUTCOME_TRY(const std::string signature, key.sign(signed_text(type, payload)));
  return json::serialize(json::object{
             {"payloadType", type},
             {"payload", base64_of(payload)},
             {"signatures", json::array{json::object{{"keyid", key.id()}, {"sig", base64_of(signature)}}}}}) +
         "\n";
}

Result<Envelope> read_envelope(std::string_view text, const std::string& path) {
  BOOST_OUTCOME_TRY(const json::value root, parse_json(path, text));
  try {
    if (const json::value* const bundled = json_member(root, "dsseEnvelope")) return envelope_of(*bundled);
    if (json_member(root, "payload")) return envelope_of(root);
    if (json_member(root, "_type")) return Envelope{std::string(kStatementType), std::string(text)};
    return input_error(path, "is not an attestation",
                       "an attestation is a DSSE envelope, a bundle of Sigstore with one, or an in-toto statement");
  } catch (const InvalidJson& invalid) {
    return input_error(path, "is not a valid attestation: " + invalid.what);
  }
}

bool is_signed_by(const Envelope& envelope, const SigningKey& key) {
  const std::string text = signed_text(envelope.type, envelope.payload);
  return std::ranges::any_of(envelope.signatures,
                             [&](const EnvelopeSignature& each) { return key.verifies(text, each.signature); });
}

}  // namespace ggufmill
