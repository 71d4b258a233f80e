#pragma once
// The step that writes files with which other programs run the outputs of a job.

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/api/publish/presets/preset_files.h"
#include "pipeline/api/publish/result_file.h"

namespace ggufmill {

// Returns the paths of the files, in the order in which they are written.
std::vector<std::string> paths_of(const PresetOptions& options);

class PresetsStep {
 public:
  // The arguments must outlive the step.
  PresetsStep(const PresetOptions& options, JobOutputs& outputs) : options_(options), outputs_(outputs) {}

  // Returns true if the files are what run() would write.
  bool is_done(const std::atomic<bool>* stop);
  // Writes the files; returns warnings. Starts Python to render the chat template of the model.
  Result<std::vector<std::string>> run(const StepFiles& files, bool overwrite, const std::atomic<bool>* stop);
  // Adds errors for a job without a suitable output, and for one that is not its own.
  void check(Diagnostics& errors);

 private:
  struct Text {
    std::string path, text;
  };
  // An output with a text model in a GGUF file, or a projector.
  struct Output {
    std::string path, recipe;
    std::uint64_t bytes = 0;
    std::size_t files = 0;
    ModelPart part = ModelPart::kText;
    bool is_embedding = false;
    const PlannedOutput* planned = nullptr;
  };
  Result<std::vector<Output>> outputs();
  // Returns the output that the Modelfile is for; null if there is none.
  const Output* chosen(const std::vector<Output>& all) const;
  Result<std::vector<Text>> texts(const std::atomic<bool>* stop);

  const PresetOptions& options_;
  JobOutputs& outputs_;
  std::vector<std::string> warnings_;
};

}  // namespace ggufmill
