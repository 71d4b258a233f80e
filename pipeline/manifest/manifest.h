#pragma once
// The manifest of an output: checksums of its files, and what they were made from.

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
  std::uint64_t xxh3 = 0;               // XXH3 (64 bits) of these bytes
  std::string made_of;                  // identity_of() the plan's step and encoding
  std::string encoder{};                // as from describe(); empty: the reference, or a copy
  bool exact = false;                   // measured to be quantized without any error (report.error)
};

struct ManifestFile {
  std::string name;  // in the manifest's folder
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
  std::vector<ManifestTensor> tensors;
};

// As JSON: {format: "ggufmill manifest", version: 1, ggufmill, identity, recipe, sources: [{path, bytes, header_hash,
// modified, changed}], modules: [{type, name, version, xxh3}], files: [{name, bytes, sha256, tensors: [{name, offset,
// bytes, xxh3, made_of, encoder, exact}]}]}; `encoder` is present where it is not the reference, `exact` where it is
// true.
struct Manifest {
  std::string ggufmill, identity;  // version of ggufmill; identity_of() the output
  std::string recipe;              // empty if there is none
  std::vector<SourceFile> sources;
  std::vector<std::int64_t> inode_times;  // of the sources, as in the plan
  std::vector<ManifestFile> files;
  std::vector<TypeModule> modules{};  // for the foreign types that affected the bytes
};
std::string write_manifest(const Manifest& manifest);
// Returns a line for each file, in the format of sha256sum.
std::string write_sums(const Manifest& manifest);
// Validates the contents: file names must be in the manifest's folder, and tensors inside their files. Exit code 4.
Result<Manifest> read_manifest(std::string_view text, const std::string& path);
Result<Manifest> load_manifest(const std::string& path);

// Computes the SHA-256 of every file of `manifest` and the XXH3 of its tensors, with bytes obtained through `read`, on
// `threads` threads. `read_bytes`, if not null, is called after every piece, from several threads. Returns kInterrupted
// if `*stop` is set.
Status sum_up(Manifest& manifest, const FileReader& read, unsigned threads, const std::atomic<bool>* stop,
              const std::function<void(std::uint64_t bytes)>& read_bytes = {});

// Size and SHA-256 (64 hexadecimal digits) of a file, or of an object on a server.
struct FileSum {
  std::uint64_t bytes = 0;
  std::string sha256;
};
// Reads all of it. Fails with exit code 4 if it is missing, 6 or 75 if it cannot be read, and kInterrupted if `*stop`
// is set. `read_bytes` is as in sum_up().
Result<FileSum> sum_of(const std::string& path, const std::atomic<bool>* stop = nullptr,
                       const std::function<void(std::uint64_t bytes)>& read_bytes = {});

// Returns the manifest of an output of a plan, once its files are complete; the checksums are not computed yet.
Manifest manifest_of(const Plan& plan, std::size_t output);

// Returns true if the manifest of an output exists and describes what the plan would make, whether or not its files
// exist.
bool is_described(const Plan& plan, std::size_t output);

// Returns the paths of local manifests and lists of checksums of outputs that is_described() is true for, but whose
// files are gone: a run of the plan writes the same again.
std::vector<std::string> orphaned_manifests(const Plan& plan);

// Returns for each output whether it already exists as the plan would make it: its manifest describes its files and has
// the output's identity, the files have the expected sizes and headers, and they have not been modified since the
// manifest was renamed to its final name. Files that have been modified since are read and compared with the manifest's
// checksums; with plan.verify, all files are. Once `*stop` is set, files not read yet count as changed.
std::vector<bool> unchanged_outputs(const Plan& plan, const std::atomic<bool>* stop = nullptr);

}  // namespace ggufmill
