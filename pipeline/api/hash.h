#pragma once
// Hashes of a model's tensors and of all its weights, as llama.cpp's gguf-hash prints them.

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
  kUuid,  // version 5 (RFC 9562, 5.5), of all tensors alone
};
inline constexpr std::string_view kHashNames[] = {"xxh64", "sha1", "sha256", "uuid"};
inline std::string_view name_of(HashKind kind) { return kHashNames[static_cast<std::size_t>(kind)]; }

struct HashOptions {
  std::vector<HashKind> kinds{HashKind::kXxh64};  // in the order of the enumeration
  bool tensors = true;                            // of each tensor too, not of all together alone
  const std::atomic<bool>* stop = nullptr;        // once it is set it ends with kInterrupted
};

struct Hash {
  HashKind kind;
  std::string digits;  // small hexadecimal ones
  std::string of;      // `path`, or "path:tensor"
};

// Of the bytes of the tensors, in the order of the model, without padding and header (llama.cpp,
// examples/gguf-hash, MIT: its namespace of UUIDs, its names). Exit code 2 for tensors that are no bytes of a file.
Result<std::vector<Hash>> hash_model(const Model& model, const std::string& path, const HashOptions& options);

// Digits by the kind and what they are of; of several lines the first.
using KnownHashes = std::map<std::pair<HashKind, std::string>, std::string>;
// A file of lines "kind  digits  of", as gguf-hash writes and checks them. Other lines are not looked at; exit code 4
// where there is none.
Result<KnownHashes> read_hashes(const std::string& path);

}  // namespace ggufmill
