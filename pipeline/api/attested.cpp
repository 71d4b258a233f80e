#include "pipeline/api/attested.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/envelope.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {
namespace {

std::string name_in_folder(const std::string& path) {
  return is_address(path) ? name_of_address(path) : fs::path(path).filename().string();
}

}  // namespace

Result<SignedAttestation> read_attestation(const std::string& path, const std::string& public_key) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxJsonBytes));
  BOOST_OUTCOME_TRY(const Envelope envelope, read_envelope(text, path));
  SignedAttestation read{path, {}, {}};
  if (!public_key.empty()) {
    BOOST_OUTCOME_TRY(const SigningKey key, SigningKey::read_public(public_key));
    if (envelope.signatures.empty())
      return Error{ExitCode::kVerification, path, "is not signed", "",
                   "whoever made it signs it: `attestation: {key: KEY.pem}` in the pipeline file"};
    if (!is_signed_by(envelope, key))
      return Error{ExitCode::kVerification, path, fmt::format("is not signed with the key {}", quoted_name(public_key)),
                   "", "it was changed, or is of somebody else: get it, and the key, from whoever made the files"};
    read.key_id = key.id();
  }
  if (envelope.type != kStatementType)
    return input_error(path,
                       fmt::format("is an envelope of {}, not of an in-toto statement", quoted_name(envelope.type)),
                       fmt::format("the type of its payload must be {}", kStatementType));
  BOOST_OUTCOME_TRY(read.statement, read_statement(envelope.payload, path));
  return read;
}

std::string unsigned_warning(const SignedAttestation& attestation, const std::string& key_option) {
  if (!attestation.key_id.empty()) return {};
  return fmt::format("{}: its signature is not checked: give the public key of whoever made it, {}", attestation.path,
                     key_option);
}

Result<AttestedFile> find_attested(const SignedAttestation& attestation, const std::string& path,
                                   const std::atomic<bool>* stop,
                                   const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::vector<AttestedFile>& files = attestation.statement.files;
  BOOST_OUTCOME_TRY(const auto opened, open_source(path));
  std::uint64_t done = 0;
  BOOST_OUTCOME_TRY(const FileSum sum, sum_of(path, stop, [&](std::uint64_t bytes) {
                      done += bytes;
                      if (progress) progress(done, opened->bytes());
                    }));
  const auto same_bytes = std::ranges::find(files, sum.sha256, &AttestedFile::sha256);
  const auto same_name = std::ranges::find(files, name_in_folder(path), &AttestedFile::name);
  if (same_name != files.end() && same_name->sha256 == sum.sha256) return *same_name;
  if (same_bytes != files.end()) return *same_bytes;
  if (same_name == files.end()) {
    std::vector<std::string> names;
    for (const AttestedFile& each : files) names.push_back(each.name);
    return Error{ExitCode::kVerification, path, fmt::format("is none of the files that {} attests", attestation.path),
                 "it has " + list_some(names), "give the attestation that was published with the file"};
  }
  return Error{ExitCode::kVerification, path, fmt::format("is not the file that {} attests", attestation.path),
               fmt::format("its SHA-256 is {}, and the attestation has {}", sum.sha256, same_name->sha256),
               "the file is damaged or was changed: download it again, or recreate it"};
}

}  // namespace ggufmill
