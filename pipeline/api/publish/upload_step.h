#pragma once
// The step that uploads the files of a job to the hub.

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/step_results.h"
#include "pipeline/io/remote/hub_upload.h"

namespace ggufmill {

class UploadStep {
 public:
  // Receives the bytes that were sent, and those of all files; may be empty.
  using SendProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

  // The arguments must outlive the step.
  UploadStep(const UploadOptions& options, JobOutputs& outputs) : options_(options), outputs_(outputs) {}

  bool is_done();
  // Fails if the hub would not take the upload: it is asked before hours of work. Exit code 2 if it does not take a
  // file of that size, or if the repository has a file of the same name that no earlier run of such a job has uploaded,
  // and `overwrite` is not set.
  Status check_access(bool overwrite, const std::atomic<bool>* stop);
  Status run(bool overwrite, const std::atomic<bool>* stop, const SendProgress& progress);

  // ---- the content of a part, of a job that is_divided(); run() makes the commit ----

  // Returns true if the content of all files of an output is on the hub, as far as is known.
  bool is_sent(const WrittenOutput& written) const;
  // Returns true if the part is sent, and removed.
  bool is_part_done(const JobPart& part);
  // Sends the files that are missing from the hub, and removes the local copies of all that it has.
  Status send_part(const JobPart& part, const std::atomic<bool>* stop, const SendProgress& progress);

  // Returns what the user should know of what was sent, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  // Adds errors for an address of no repository, for files of the same name, and for files that the hub would refuse.
  void check(Diagnostics& errors);

 private:
  // Returns the paths of the files that the repository will have, by name there. Adds errors for those of one name.
  Result<std::map<std::string, std::string>> planned(Diagnostics& errors);
  Result<bool> is_uploaded(const std::string& name) const;
  // Return the key of what earlier runs have committed under a name, and that as contents_on_hub() names it.
  std::string key_of_name(const std::string& name) const;
  std::vector<std::string> committed(const std::string& name) const;
  Status add_file(remote::HubFile file, std::vector<remote::HubFile>& files) const;
  Status add_output(const WrittenOutput& written, std::vector<remote::HubFile>& files) const;
  Result<std::vector<remote::HubFile>> files_of(const JobPart& part);
  Result<std::vector<remote::HubFile>> files();
  Result<remote::HubUpload> target();
  std::string key_of(const std::vector<remote::HubFile>& files) const;
  std::string key_of_content(const remote::HubFile& file) const;
  // Returns whether the hub has the content; nullopt if it was not asked.
  std::optional<bool> has_content(const remote::HubFile& file) const;

  // Returns the planned files that are uploaded and that only Xet can send. They live as long as the plans.
  Result<std::vector<const OutputFile*>> files_for_xet();
  Error error_of_size(const OutputFile& file, const std::string& why) const;
  // Asks the hub whether it takes them.
  Status check_sizes(const remote::HubUpload& repository, const remote::Settings& settings);

  const UploadOptions& options_;
  JobOutputs& outputs_;
  StepResults results_;
  std::vector<std::string> notes_;
};

}  // namespace ggufmill
