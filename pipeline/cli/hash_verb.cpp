// `ggufmill hash`: prints and checks hashes of tensors and of all weights, as gguf-hash does.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/api/describe.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec hash_command() {
  CommandSpec spec;
  spec.usage = "ggufmill hash MODEL [options]";
  spec.description =
      "Hash the weights of a GGUF file, a sharded model, or safetensors files: each tensor, and all of them together, "
      "without header and padding. Files that differ only in metadata, alignment, or shards therefore have the same "
      "hashes. The lines have the format of llama.cpp's gguf-hash. The default kind is xxh64. --check compares with "
      "such lines; the exit code is 3 if a hash differs or nothing was compared.\n\nTo check whether a file is "
      "unchanged, use `ggufmill verify` with a manifest.";
  spec.examples =
      "  ggufmill hash model.gguf\n"
      "  ggufmill hash model.gguf --all > model.hashes\n"
      "  ggufmill hash model.gguf --check model.hashes";
  spec.positional = "model";
  auto add = spec.options.add_options();
  add("xxh64", "XXH64");
  add("sha1", "SHA-1");
  add("sha256", "SHA-256");
  add("uuid", "UUID (version 5) of all weights");
  add("all", "xxh64, sha1, and sha256");
  add("no-layer", "hash only all tensors together");
  add("check,c", po::value<std::string>(),
      "file of hashes to compare with; without a kind, its strongest kind is compared");
  add("json", "print one JSON object: {model, hashes: [{kind, hash, of}]}");
  add_kernel_options(spec.options);
  return spec;
}

std::vector<HashKind> kinds_in(const po::variables_map& values, const std::optional<KnownHashes>& known) {
  std::vector<HashKind> kinds;
  for (std::size_t i = 0; i < std::size(kHashNames); ++i) {
    const auto kind = static_cast<HashKind>(i);
    const bool of_all = values.count("all") && kind != HashKind::kUuid;
    if (of_all || values.count(std::string(kHashNames[i]))) kinds.push_back(kind);
  }
  if (kinds.empty()) kinds.push_back(known ? strongest_of(*known) : HashKind::kXxh64);
  return kinds;
}

int compare(const std::vector<Hash>& hashes, const KnownHashes& known, const std::string& list) {
  for (const Hash& hash : hashes) {
    const auto wanted = known.find({hash.kind, hash.of});
    std::printf("%-8s  %s  %s  -  %s\n", std::string(name_of(hash.kind)).c_str(), hash.digits.c_str(),
                printable(hash.of).c_str(),
                wanted == known.end()           ? "Not Found"
                : wanted->second == hash.digits ? "Ok"
                                                : "Mismatch");
  }
  const Status same = compare_hashes(hashes, known, list);
  return same ? 0 : fail(same.error());
}

int hash_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  std::optional<KnownHashes> known;
  const auto list = text_of(values, "check");
  if (list) {
    auto read = read_hashes(*list);
    if (!read) return fail(read.error());
    known = std::move(read).value();
  }
  const auto path = values["model"].as<std::string>();
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto model = context.value().inspect(path);
  if (!model) return fail(model.error());
  HashOptions options;
  options.kinds = kinds_in(values, known);
  options.tensors = values.count("no-layer") == 0;
  options.stop = catch_signals();
  const auto hashes = hash_model(model.value(), path, options);
  if (!hashes) {
    const int code = fail(hashes.error());
    return signal_exit_code().value_or(code);
  }
  if (known) return compare(hashes.value(), *known, *list);
  if (values.count("json")) {
    std::puts(to_json_text(describe_hashes(path, hashes.value())).c_str());
    return 0;
  }
  for (const Hash& hash : hashes.value())
    std::printf("%-8s  %s  %s\n", std::string(name_of(hash.kind)).c_str(), hash.digits.c_str(),
                printable(hash.of).c_str());
  return 0;
}

}  // namespace

const Verb kHashVerb{"hash", VerbGroup::kInspect, "Hash the weights of a model, as gguf-hash does", hash_command,
                     hash_verb};

}  // namespace ggufmill
