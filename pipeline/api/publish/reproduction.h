#pragma once
// Files made again from what an attestation names, and compared with those it attests.

#include <string>
#include <vector>

#include "pipeline/api/attested.h"
#include "pipeline/api/run.h"
#include "pipeline/core/job.h"

namespace ggufmill {

class Context;

struct ReproducedFile {
  std::string name, path;  // in the attestation; of the file that was made
  bool is_same = false;
  std::vector<std::string> keys{}, tensors{};  // those that differ, or that only one of the files has
};

// Not thread-safe. The arguments must outlive it.
class Reproduction {
 public:
  // `sources` is the folder that relative names of sources start from; empty: the current one. Outputs go to `folder`.
  Reproduction(const Context& context, const SignedAttestation& attestation, std::string sources, std::string folder)
      : context_(context), attestation_(attestation), sources_(std::move(sources)), folder_(std::move(folder)) {}

  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;
  // Checks that the sources are those that the attestation names. Reads all of them. Exit code 4 for one that is
  // missing, 3 for one that is another.
  Status check_sources(const std::atomic<bool>* stop, const Progress& progress) const;
  // Returns the job, without what does not decide a byte of its outputs: limits, reports, and steps. Nothing that it
  // names is executed.
  Result<Job> job() const;
  // Lets the outputs record the paths of importance matrices that the attested files record, which are those of another
  // machine. Returns false if `plan`, of the job, already has them.
  bool record_paths(const Plan& plan, Job& job) const;
  // Checks that the plan reads nothing but the sources of the attestation. Exit code 3.
  Status check_inputs(const Plan& plan) const;
  // Compares the outputs of the plan, which are written, with those that are attested.
  Result<std::vector<ReproducedFile>> compare(const Plan& plan) const;
  // Returns how this program differs from the one that made the files, where that can explain other bytes: one line
  // each.
  std::vector<std::string> differences() const;

 private:
  std::string path_of(const AttestedSource& source) const;
  std::string in_sources(const std::string& path) const;
  // Lets a stage read the importance that was computed, instead of computing it.
  Status read_importance(JobOutput& output) const;
  // Returns the attested file of this name; null if there is none.
  const AttestedFile* attested_as(const std::string& path) const;

  const Context& context_;
  const SignedAttestation& attestation_;
  const std::string sources_, folder_;
};

}  // namespace ggufmill
