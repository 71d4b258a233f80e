#pragma once
// Jobs for tests of parts and seals, with a GGUF model or a checkpoint as source and outputs of one or several files.

#include <map>
#include <string>
#include <vector>

#include "pipeline/cluster/part.h"
#include "pipeline/cluster/seal.h"
#include "pipeline/cluster/submit.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::testing {

// Returns a context with the reference kernels.
const Context& context();

enum class SourceKind { kGguf, kCheckpoint };

// A folder with a model of about 20 MiB and a pipeline file with three outputs, one of them sharded.
class JobFolder {
 public:
  explicit JobFolder(SourceKind source = SourceKind::kGguf, const std::string& more = "");

  std::string path(const std::string& name) const { return folder_.file(name); }
  // Returns a pipeline whose outputs are in `folder`, relative to this folder.
  std::string pipeline(const std::string& folder) const;
  Plan plan(const std::string& folder = "out") const;
  // Creates a job with the given number of parts, including its folder and outputs.
  ClusterJob job(const Plan& plan, unsigned parts) const;
  // Returns the contents of the files in a folder, by name; hidden files are omitted.
  std::map<std::string, std::string> files(const std::string& folder = "out") const;
  // Returns the files that a single run writes.
  std::map<std::string, std::string> right() const;

 private:
  void write_gguf() const;
  void write_checkpoint() const;

  TempDir folder_;
  const SourceKind source_;
  const std::string more_;
};

// Each of these fails the test on error.
PartOutcome do_part(const ClusterJob& job, const Plan& plan, std::size_t part);
void do_parts(const ClusterJob& job, const Plan& plan);
SealOutcome do_seal(const ClusterJob& job, const Plan& plan);
// Returns the error of a seal that must fail.
Error seal_error(const ClusterJob& job, const Plan& plan);

}  // namespace ggufmill::testing
