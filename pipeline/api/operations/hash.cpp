// `hash`: hashes of tensors and of all weights, as gguf-hash prints and checks them.

#include "pipeline/api/hash.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/operations/operations.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct HashRequest {
  std::string path{};
  std::vector<HashKind> kinds{};
  bool tensors = true;
  std::string check{};
};

struct CheckedHash : Hash {
  std::string state;  // compared with that of a file: "Ok", "Mismatch", "Not Found"; else empty
};

struct Hashes {
  std::string model;
  std::vector<CheckedHash> hashes;
};

// Adds the state of each hash; returns the error of those that differ.
std::optional<Error> check_hashes(const std::vector<Hash>& hashes, const KnownHashes& known, const std::string& list,
                                  std::vector<CheckedHash>& checked) {
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto wanted = known.find({hashes[i].kind, hashes[i].of});
    const bool is_same = wanted != known.end() && wanted->second == hashes[i].digits;
    checked[i].state = wanted == known.end() ? "Not Found" : is_same ? "Ok" : "Mismatch";
  }
  const Status same = compare_hashes(hashes, known, list);
  if (same) return {};
  return same.error();
}

Result<Answer<Hashes>> run_hash(const Context& context, const HashRequest& request, const Call& call) {
  KnownHashes known;
  if (!request.check.empty()) {
    BOOST_OUTCOME_TRY(known, read_hashes(request.check));
  }
  BOOST_OUTCOME_TRY(const Model model, context.inspect(request.path));
  HashOptions options;
  options.kinds = request.kinds;
  std::ranges::sort(options.kinds);
  options.kinds.erase(std::unique(options.kinds.begin(), options.kinds.end()), options.kinds.end());
  if (options.kinds.empty()) options.kinds = {known.empty() ? HashKind::kXxh64 : strongest_of(known)};
  options.tensors = request.tensors;
  options.stop = call.stop();
  BOOST_OUTCOME_TRY(const std::vector<Hash> hashes, hash_model(model, request.path, options));
  Answer<Hashes> answer{{request.path, {}}};
  for (const Hash& hash : hashes) answer.value.hashes.push_back({hash, ""});
  if (!known.empty()) answer.failure = check_hashes(hashes, known, request.check, answer.value.hashes);
  return answer;
}

void print_hashes(const Hashes& hashes, TextOutput& to) {
  for (const CheckedHash& hash : hashes.hashes) {
    to.out += fmt::format("{:<8}  {}  {}", name_of(hash.kind), hash.digits, printable(hash.of));
    to.out += hash.state.empty() ? "\n" : fmt::format("  -  {}\n", hash.state);
  }
}

ResultForm<Hashes> hash_result() {
  const ResultForm<CheckedHash> hash{
      {result<CheckedHash>(
           "kind", [](const CheckedHash& it) { return boost::json::value(name_of(it.kind)); },
           "xxh64, sha1, sha256, or uuid"),
       result<CheckedHash>(
           "hash", [](const CheckedHash& it) { return boost::json::value(it.digits); }, "hexadecimal digits"),
       result<CheckedHash>(
           "of", [](const CheckedHash& it) { return boost::json::value(it.of); }, "MODEL or MODEL:TENSOR"),
       result<CheckedHash>(
           "state",
           [](const CheckedHash& it) {
             return it.state.empty() ? std::nullopt : std::optional(boost::json::value(it.state));
           },
           "Ok, Mismatch, or Not Found")}};
  return {{result("model", &Hashes::model, "path of the model"),
           result("hashes", &Hashes::hashes, hash, "a hash of each tensor, and of all; `state` with @check")}};
}

}  // namespace

OperationSpec hash_operation() {
  return operation(OperationOf<HashRequest, Hashes>{
      .name = "hash",
      .group = OperationGroup::kInspect,
      .summary = "Hash the weights of a model, as gguf-hash does",
      .description =
          "Hash the weights of a GGUF file, a sharded model, or safetensors files: each tensor, and all of them "
          "together, without header and padding. Files that differ only in metadata, alignment, or shards therefore "
          "have the same hashes. The lines have the format of llama.cpp's gguf-hash. The default kind is xxh64. @check "
          "compares with such lines; @error3: a hash differs, or nothing was compared.\n\nTo check whether a file is "
          "unchanged, use `ggufmill verify` with a manifest.",
      .examples = "  ggufmill hash model.gguf\n"
                  "  ggufmill hash model.gguf --all > model.hashes\n"
                  "  ggufmill hash model.gguf --check model.hashes",
      .options = {option("path", &HashRequest::path, path(), "the model").word("MODEL"),
                  option("kinds", &HashRequest::kinds, list_of(enumeration<HashKind>(kHashNames)),
                         "kinds of hashes; by default xxh64, or with @check the strongest kind in its file")
                      .as_flags({{"xxh64", "[xxh64]", "XXH64"},
                                 {"sha1", "[sha1]", "SHA-1"},
                                 {"sha256", "[sha256]", "SHA-256"},
                                 {"uuid", "[uuid]", "UUID (version 5) of all weights"},
                                 {"all", "[xxh64, sha1, sha256]", "xxh64, sha1, and sha256"}}),
                  option("tensors", &HashRequest::tensors, "hash each tensor, besides all of them together")
                      .as_flags({{"no-layer", "false", "hash only all tensors together"}}),
                  option("check", &HashRequest::check, path(),
                         "file of hashes to compare with; without a kind, its strongest kind is compared")
                      .short_flag('c')},
      .result = hash_result(),
      .run = run_hash,
      .print = print_hashes});
}

}  // namespace ggufmill
