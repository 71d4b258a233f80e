#pragma once
// The step that uploads the files of a job to the hub.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/step_results.h"
#include "pipeline/io/remote/hub_upload.h"

namespace ggufmill {

class UploadStep {
 public:
  // The arguments must outlive the step.
  UploadStep(const UploadOptions& options, JobOutputs& outputs) : options_(options), outputs_(outputs) {}

  bool is_done();
  // `progress` receives the bytes that were sent, and those of all files; it may be empty.
  Status run(const std::atomic<bool>* stop,
             const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);
  // Adds errors for an address of no repository, for files of the same name, and for files that the hub would refuse.
  void check(Diagnostics& errors);

 private:
  Result<std::vector<remote::HubFile>> files();
  std::string key_of(const std::vector<remote::HubFile>& files) const;

  const UploadOptions& options_;
  JobOutputs& outputs_;
  StepResults results_;
};

}  // namespace ggufmill
