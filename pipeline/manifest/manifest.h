#pragma once
// The manifest of an output: what its files hold, as checksums, and what they were made of.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/output_store.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

struct ManifestTensor {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;  // in its file
  std::uint64_t xxh3 = 0;               // XXH3 with 64 bits of these bytes
  std::string made_of;                  // identity_of() the plan's step and encoding
};

struct ManifestFile {
  std::string name;  // in the manifest's folder
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
  std::vector<ManifestTensor> tensors;
};

// As JSON: {format: "ggufmill manifest", version: 1, ggufmill, identity, recipe, sources: [{path, bytes, header_hash,
// modified, changed}], modules: [{type, name, version, xxh3}], files: [{name, bytes, sha256, tensors: [{name, offset,
// bytes, xxh3, made_of}]}]}.
struct Manifest {
  std::string ggufmill, identity;  // version; identity_of() the output
  std::string recipe;              // empty: none
  std::vector<SourceFile> sources;
  std::vector<std::int64_t> inode_times;  // of the sources, as in the plan
  std::vector<ManifestFile> files;
  std::vector<TypeModule> modules{};  // of the foreign types that decided bytes
};
std::string write_manifest(const Manifest& manifest);
// A line for each file, as sha256sum writes and reads them.
std::string write_sums(const Manifest& manifest);
// Nothing in it is believed: names are those of files beside it, tensors lie in their files. Exit code 4.
Result<Manifest> read_manifest(std::string_view text, const std::string& path);
Result<Manifest> load_manifest(const std::string& path);

// SHA-256 and XXH3 of every file of `manifest` and its tensors, as `read` gives them, on so many threads. `read_bytes`,
// if not null, is called after every piece, from several threads. With `stop` set: kInterrupted.
Status sum_up(Manifest& manifest, const FileReader& read, unsigned threads, const std::atomic<bool>* stop,
              const std::function<void(std::uint64_t bytes)>& read_bytes = {});

// Of an output of a plan, once its files are whole; not yet summed up.
Manifest manifest_of(const Plan& plan, std::size_t output);

// Of each output whether it is there as the plan would make it: its manifest is about its files and says so, they have
// their sizes and headers, and nothing has touched them since the manifest got its name. What something has touched is
// read and compared with the manifest's checksums, and with plan.verify all is. Once `*stop` is set, what is not read
// by then counts as changed.
std::vector<bool> unchanged_outputs(const Plan& plan, const std::atomic<bool>* stop = nullptr);

}  // namespace ggufmill
