#pragma once
// The manifests that a plan asks for beside its outputs.

#include <atomic>
#include <memory>
#include <vector>

#include "pipeline/io/atomic_file.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {

using FileList = std::vector<std::unique_ptr<AtomicFile>>;

// The manifests and lists of sums of all outputs, whole under temporary names. `read`: of the files of all outputs, in
// order. What a run of this plan that was killed left of them is written anew.
Result<FileList> make_manifests(const Plan& plan, const FileReader& read, bool overwrite,
                                const std::atomic<bool>* stop);
// Gives them their names.
Status publish(const FileList& files);
// Both, for outputs that have their names already. A manifest that is there is replaced: whoever named the outputs
// found none, or was to replace it.
Status add_manifests(const Plan& plan, const std::atomic<bool>* stop);

}  // namespace ggufmill
