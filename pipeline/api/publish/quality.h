#pragma once
// The step that compares outputs with one of them.

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/api/llama_programs.h"
#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/step_results.h"

namespace ggufmill {

// Fails with exit code 2 if no output of the job is the base.
Status check_base(const QualityOptions& options, const Job& job);
std::string base_of(const QualityOptions& options, const Job& job);  // its target

// Returns true for an output, whose first file is `path`, that is compared with the base; false for the base itself.
bool is_compared(const QualityOptions& options, const Job& job, const JobOutput& output, const std::string& path);
bool is_base(const QualityOptions& options, const Job& job, const JobOutput& output);

// An output that exists.
struct QualityOutput {
  std::string path;                 // of the first file
  std::vector<std::string> sha256;  // of its files
};

// The quality of outputs, as JSON, by the path of their first file.
using QualityByPath = std::vector<std::pair<std::string, boost::json::object>>;

// Measures each output once, whatever interrupts it; the predictions of the base are kept in a file next to it until
// all outputs of the job are measured.
class QualityStep {
 public:
  // For the outputs of the first `parts` parts of the job, or all, which are written. The options must outlive the
  // step.
  static Result<QualityStep> make(const QualityOptions& options, JobOutputs& outputs,
                                  std::optional<std::size_t> parts = {});

  const QualityOutput& base() const { return base_; }
  // Returns the results known so far, in the order of the outputs.
  std::vector<std::optional<MeasuredQuality>> known() const;
  // Returns the result of the output at `path`, if it is known.
  std::optional<MeasuredQuality> known_of(const std::string& path) const;
  // The results known so far, for the report.
  QualityByPath by_path() const;
  bool is_measured() const;  // all outputs are
  // True if the base is not needed any more for outputs of this job.
  bool has_predictions() const;
  // True if all outputs are measured, and the files of results and reports are as they should be; of the first parts of
  // a job, if the base is not needed any more.
  bool is_done() const;
  // Measures what is missing, writes the file of results, and adds them to the reports. Fails like measure_quality(),
  // and with exit code 2 if that file exists, was written by something else, and `overwrite` is not set.
  Status run(const ProgramOptions& programs, bool overwrite) const;

  // The results as JSON: {format: "ggufmill quality", version: 1, against, text, chunks, context, outputs: [{path,
  // sha256, perplexity, base_perplexity, divergence, divergence_error, divergence_99, divergence_max, same_top}]}.
  std::string json() const;

 private:
  explicit QualityStep(const QualityOptions& options) : options_(options) {}
  std::string key_of(const QualityOutput& output) const;
  std::string predictions() const;

  const QualityOptions& options_;
  QualityOutput base_;
  std::vector<QualityOutput> outputs_;
  bool is_whole_ = true;              // has all outputs of the job
  std::string text_hash_;             // hash_of() the text
  std::vector<std::string> reports_;  // paths of the run's reports
  StepResults results_;
};

}  // namespace ggufmill
