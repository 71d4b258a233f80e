#pragma once
// The files of a run: inputs opened, outputs created with their full size before the first byte is read.

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/io.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Destroyed before seal(): no output is left. The plan outlives it. Reading members are thread-safe.
class RunFiles {
 public:
  // Creates the outputs on as many `threads`: where reserving takes time (a file system in memory or on the network),
  // many outputs take no more of it than few. Exit code 4 for an input that is not what was planned with, else as
  // AtomicFile::create, for the first output in order that failed.
  static Result<std::unique_ptr<RunFiles>> open(const Plan& plan, bool overwrite, IoMode mode, unsigned threads);

  const InputFile& input(const Route& route) const { return *inputs_[route.source.file]; }
  AtomicFile& output(const Target& target) const { return *outputs_[target.output][target.file]; }

  // Publishes the outputs one after the other, in order, when all their bytes are written. After an error, or a set
  // `stop`, those published before stay and the others are removed; the error says how many there are.
  Status seal(const std::atomic<bool>* stop);

 private:
  explicit RunFiles(const Plan& plan) : plan_(plan) {}
  Status open_inputs(IoMode mode);
  Status create_outputs(const AtomicFile::Options& options, unsigned threads);

  const Plan& plan_;
  std::vector<std::shared_ptr<const InputFile>> inputs_;
  std::vector<std::vector<std::unique_ptr<AtomicFile>>> outputs_;
};

// What a run that was stopped by the user ends with.
Error interrupted(std::size_t sealed_files, std::size_t files);

}  // namespace ggufmill
