#pragma once
// Hashes of a model's individual tensors and of all its weights, in the format of llama.cpp's gguf-hash.

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

enum class HashKind {
  kXxh64,
  kSha1,
  kSha256,
  kUuid,  // version 5 (RFC 9562, 5.5); only of all tensors together
};
inline constexpr std::string_view kHashNames[] = {"xxh64", "sha1", "sha256", "uuid"};
inline std::string_view name_of(HashKind kind) { return kHashNames[static_cast<std::size_t>(kind)]; }

struct HashOptions {
  std::vector<HashKind> kinds{HashKind::kXxh64};  // in the order of the enumeration
  bool tensors = true;                            // hash each tensor in addition to all together
  const std::atomic<bool>* stop = nullptr;        // when set, hashing ends with kInterrupted
};

struct Hash {
  HashKind kind;
  std::string digits;  // lowercase hexadecimal
  std::string of;      // `path` or "path:tensor"
};

// Returns the hashes of the bytes of the tensors, in the order of the model, without padding and header (llama.cpp,
// examples/gguf-hash, MIT: the UUID namespace and the names of the hashes). Fails with exit code 2 if a tensor is
// computed and so has no bytes in a file.
Result<std::vector<Hash>> hash_model(const Model& model, const std::string& path, const HashOptions& options);

// Maps the kind and the hashed object to the digits. If an object is listed more than once, the first line counts.
using KnownHashes = std::map<std::pair<HashKind, std::string>, std::string>;
// Reads a file of lines "kind  digits  of", as gguf-hash writes and checks them. Ignores other lines; fails with exit
// code 4 if no line has a known kind.
Result<KnownHashes> read_hashes(const std::string& path);
// Returns the first of sha256, sha1, xxh64 and uuid that the list contains.
HashKind strongest_of(const KnownHashes& known);
// Fails with exit code 3 if hashes differ from those in the file `list`, or if it has none of them.
Status compare_hashes(const std::vector<Hash>& hashes, const KnownHashes& known, const std::string& list);

}  // namespace ggufmill
