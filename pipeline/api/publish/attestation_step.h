#pragma once
// The step that writes what the outputs of a job were made from, for others to check.

#include <atomic>
#include <functional>
#include <string>

#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/result_file.h"
#include "pipeline/api/publish/step_results.h"
#include "pipeline/manifest/attestation.h"
#include "pipeline/manifest/envelope.h"

namespace ggufmill {

class AttestationStep {
 public:
  // Receives the bytes of the sources that were read, and those of all; may be empty.
  using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

  // The arguments must outlive the step.
  AttestationStep(const AttestationOptions& options, const Context& context, JobOutputs& outputs)
      : options_(options), context_(context), outputs_(outputs) {}

  // Returns true if the file attests what is there now, signed with the key. Reads no source.
  bool is_done();
  // Reads the sources whose checksums are not known, and writes the file.
  Status run(const StepFiles& files, bool overwrite, const std::atomic<bool>* stop, const ReadProgress& progress);
  // Adds errors for a key that cannot sign, and for outputs of the same name.
  void check(Diagnostics& errors);

 private:
  struct Source {
    std::string path;
    SourceFile described;
  };
  Result<std::vector<Source>> sources();
  // Returns the paths of the files that decide the bytes of a part: not those of earlier outputs that `reuse` names.
  Result<std::vector<std::string>> inputs_of(const JobPart& part);
  // Returns the checksum of a source if an earlier run has computed it; empty otherwise.
  std::string known_sum(const Source& source) const;
  static std::string key_of(const Source& source);
  // Returns the attestation; fails if the checksum of a source is not known.
  Result<Attestation> attestation();
  Result<std::vector<AttestedModule>> modules() const;

  const AttestationOptions& options_;
  const Context& context_;
  JobOutputs& outputs_;
  StepResults results_;
};

}  // namespace ggufmill
