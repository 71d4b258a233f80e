#pragma once
// The manifests that a plan requests next to its outputs.

#include <atomic>
#include <memory>
#include <vector>

#include "pipeline/io/atomic_file.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {

using FileList = std::vector<std::unique_ptr<AtomicFile>>;

// Writes the manifests and checksum lists of all outputs under temporary names. `read` reads the files of all outputs,
// numbered in order. Replaces unfinished manifests left by a killed run of this plan.
Result<FileList> make_manifests(const Plan& plan, const FileReader& read, bool overwrite,
                                const std::atomic<bool>* stop);
// Renames the files to their final names.
Status publish(const FileList& files);
// Does both for outputs that already have their final names. Replaces existing manifests: when the outputs were
// published, no manifests existed or they were to be overwritten.
Status add_manifests(const Plan& plan, const std::atomic<bool>* stop);

}  // namespace ggufmill
