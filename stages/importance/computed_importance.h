#pragma once
// `importance: {compute: ...}`: importance that a program computes from an output of the job, before the outputs that
// need it are made.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/job.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

struct ImportanceComputation {
  std::string program = "llama-imatrix";
  std::string text;                  // path of the text
  unsigned chunks = 0;               // of the text; 0: all
  unsigned context = 512;            // tokens per chunk
  std::string model;                 // path of the output that the program reads; empty: the first output
  std::string file;                  // path of the result; empty: next to the model, see result_path()
  std::vector<std::string> options;  // further arguments of the program
  Origin origin{};

  // Returns `file`, or MODEL.imatrix.gguf for the model MODEL.gguf. `model` must be set.
  std::string result_path() const;
  bool is_same(const ImportanceComputation& other) const;
};

// A stage whose importance has to be computed first. Until then, apply() assumes that there is importance for all
// tensors of the layers, so that the types and sizes are those of the later run, and adds uncomputed() to the problems.
class ComputedImportanceStage : public Stage {
 public:
  virtual const ImportanceComputation& computation() const = 0;
  // Returns a copy of the stage that reads the result of the computation from `file`.
  virtual std::unique_ptr<Stage> with_result(const std::string& file) const = 0;
  // Returns a copy with another computation.
  virtual std::unique_ptr<Stage> with_computation(ImportanceComputation computation) const = 0;
};

// Returns the error for a model with assumed importance. wants_importance() is true for this error only.
Error uncomputed(const ImportanceComputation& computation);
bool wants_importance(const Error& error);
// Gives all tensors of layers an importance of 1, without any file.
void assume_importance(Model& model);

// Returns the computation that an output waits for; null if there is none.
const ImportanceComputation* computation_of(const JobOutput& output);

// Moves every computed importance of a job to the outputs that need it, with the path of its model: those with stages
// that use importance, of the same part of the checkpoint as the model, other than the model itself. Stages for all
// outputs that stand behind it become stages of each output, in the same order. Fails with exit code 2 if no output is
// the model, if the model needs the importance itself, or if nothing needs it.
Status place_computed_importance(Job& job);

Form<ImportanceComputation> computation_form();

}  // namespace ggufmill
