#pragma once
// The outputs of a job with steps: which are written together, and what is known of those that exist.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/batch.h"
#include "pipeline/core/job.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/plan.h"
#include "stages/importance/computed_importance.h"

namespace ggufmill {

class Context;

// The outputs of a job that are written in the same read of the source.
struct JobPart {
  Job job;  // with these outputs only, and without the job's other steps
  bool needs_importance = false;
};

// One output that exists.
struct WrittenOutput {
  const PlannedOutput* planned = nullptr;  // valid until JobOutputs::forget()
  Manifest manifest;
  std::string path;           // of the first file
  std::string manifest_path;  // next to it
  std::uint64_t bytes = 0;    // of all files
};

bool waits_for_importance(const JobOutput& output);

// Not thread-safe. The context must outlive it.
class JobOutputs {
 public:
  JobOutputs(const Context& context, const Job& job);
  JobOutputs(const JobOutputs&) = delete;  // plans are known by the addresses of the parts
  JobOutputs& operator=(const JobOutputs&) = delete;

  const Job& job() const { return job_; }  // with manifests
  // First those of the outputs without importance. Outputs stay on disk unless is_divided(): then a part has at most
  // the space that the job gives its outputs, where they are not larger, and its files are removed when they are sent.
  const std::vector<JobPart>& parts() const { return parts_; }
  bool is_divided() const { return job_.sections.publish.upload && job_.sections.publish.upload->space; }
  std::vector<ImportanceComputation> computations() const;

  // Returns the path in the user's cache for the result of a computation, under a key of all that it depends on. Fails
  // with exit code 4 if its model is not written yet.
  Result<std::string> cached_importance(const ImportanceComputation& computation);
  // Returns true if the result is in the cache and in its file.
  bool is_known(const ImportanceComputation& computation);
  // Return the job with the importance that is known.
  Job resolved(Job job);
  Job resolved(const JobPart& part) { return resolved(part.job); }
  // Returns the job of a part without the outputs that have been sent and are not needed here any more.
  Job left_of(const JobPart& part);

  // Returns the part that writes an output; null if none does.
  const JobPart* part_of(const std::string& target) const;

  // Returns the plan of a part with the importance that is known.
  Result<const Plan*> plan_of(const JobPart& part);
  // Return what is known of outputs that exist or have been sent, from their manifests; the last function for those of
  // the first `parts` parts, or of all.
  Result<WrittenOutput> written(const JobPart& part, std::size_t index);
  Result<WrittenOutput> written_as(const std::string& target);
  using TakeWritten = std::function<Status(const JobOutput& output, const WrittenOutput& written)>;
  Status for_each_written(const TakeWritten& take, std::optional<std::size_t> parts = {});

  // To be called when outputs or importance have changed. Until then, plans are kept: planning reads headers.
  void forget();

 private:
  void divide(std::uint64_t space);
  bool is_needed(const JobOutput& output);

  const Context& context_;
  Job job_;
  std::vector<JobPart> parts_;
  std::map<const JobPart*, std::optional<Plan>> plans_;
  std::map<std::string, bool> known_;  // by result_path()
};

// Adds the problems of a job with steps to `errors`, except for those that only a server knows: see check_steps() of
// job_steps.h. `source` is the path of the job's source, for messages; of `batch`, only overwrite is used.
void check_steps(const Context& context, const std::string& source, JobOutputs& outputs, const BatchOptions& batch,
                 Diagnostics& errors);

}  // namespace ggufmill
