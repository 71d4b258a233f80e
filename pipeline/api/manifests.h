#pragma once
// The manifests that a plan requests next to its outputs.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/core/lifetime.h"
#include "pipeline/graph/engine.h"
#include "pipeline/io/output_store.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {

// The manifests and checksum lists of all outputs, written under temporary names. If destroyed before publish(), they
// are removed. Movable; the default is empty.
class ManifestFiles {
 public:
  // `read` reads the files of all outputs, numbered in order; `run` has the results of the run that wrote them, null if
  // they are not known. Replaces unfinished manifests left by a killed run of this plan.
  static Result<ManifestFiles> make(const Plan& plan, const RunReport* run, const FileReader& read, bool overwrite,
                                    const std::atomic<bool>* stop);
  // Lets them appear together with `outputs`, which is sealed but not published yet, where that can be.
  void publish_with(OutputStore& outputs);
  // Gives the files their final names, unless the outputs have taken them along.
  Status publish();
  // Warnings for the user, one line each.
  std::vector<std::string> warnings() const;

 private:
  std::vector<std::string> texts_;  // their contents; the store refers to them
  std::unique_ptr<OutputStore> store_;
};

// Returns a reader of the files of all outputs, which have their final names. The plan must outlive it.
FileReader published_files(GGUFMILL_OUTLIVES_RESULT const Plan& plan);

// Writes and publishes the manifests of outputs that already have their final names. Replaces existing manifests: when
// the outputs were published, no manifests existed or they were to be overwritten.
Status add_manifests(const Plan& plan, const RunReport* run, const std::atomic<bool>* stop);

}  // namespace ggufmill
