#pragma once
// Jobs for tests of parts and seals: a GGUF model and a checkpoint, outputs of one file and of several.

#include <map>
#include <string>
#include <vector>

#include "pipeline/cluster/part.h"
#include "pipeline/cluster/seal.h"
#include "pipeline/cluster/submit.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

// With the reference's kernels.
const Context& context();

enum class SourceKind { kGguf, kCheckpoint };

// A folder with a model of some 20 MiB and a pipeline file of three outputs, one of them in shards.
class JobFolder {
 public:
  explicit JobFolder(SourceKind source = SourceKind::kGguf, const std::string& more = "");

  std::string path(const std::string& name) const { return folder_.file(name); }
  // Of the outputs in `folder`, which is in this one.
  std::string pipeline(const std::string& folder) const;
  Plan plan(const std::string& folder = "out") const;
  // A job of so many parts, and its folder and outputs.
  ClusterJob job(const Plan& plan, unsigned parts) const;
  // What is in a folder, by name; without what is hidden.
  std::map<std::string, std::string> files(const std::string& folder = "out") const;
  // What one run writes.
  std::map<std::string, std::string> right() const;

 private:
  void write_gguf() const;
  void write_checkpoint() const;

  TempDir folder_;
  const SourceKind source_;
  const std::string more_;
};

// Each ends the test where it fails.
PartOutcome do_part(const ClusterJob& job, const Plan& plan, std::size_t part);
void do_parts(const ClusterJob& job, const Plan& plan);
SealOutcome do_seal(const ClusterJob& job, const Plan& plan);
// The error of a seal that has to fail.
Error seal_error(const ClusterJob& job, const Plan& plan);

}  // namespace ggufmill::testing
