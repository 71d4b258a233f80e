#pragma once
// Attestations, and files that are compared with them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/manifest/attestation.h"

namespace ggufmill {

struct SignedAttestation {
  std::string path;
  Attestation statement;
  std::string key_id;  // of the key that was asked for, which has signed it; empty: nobody asked
};

// Reads an attestation. With the path of a public key, it must be signed with that key: exit code 3. Exit code 4 if a
// file is malformed.
Result<SignedAttestation> read_attestation(const std::string& path, const std::string& public_key);
// Returns the warning that no signature was checked; `key_option` is how to name the key. Empty if one was.
std::string unsigned_warning(const SignedAttestation& attestation, const std::string& key_option);

// Returns what an attestation says about a file, which it may know under another name. Reads all of the file. Exit code
// 3 if it is none of the files.
Result<AttestedFile> find_attested(const SignedAttestation& attestation, const std::string& path,
                                   const std::atomic<bool>* stop,
                                   const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace ggufmill
