#pragma once
// The programs of llama.cpp that jobs with steps and probes run: llama-imatrix and llama-perplexity.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/core/perplexity.h"
#include "stages/importance/computed_importance.h"

namespace ggufmill {

// Options for running a program.
struct ProgramOptions {
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;  // when set, the program is ended and the call fails with kInterrupted
  // Receives the path of the model, the number of chunks of the text that are done with it, and their total, as the
  // program prints them.
  std::function<void(const std::string& model, std::uint64_t done, std::uint64_t total)> progress{};
};

// The programs refuse a text that has fewer tokens than this, for chunks of `context` tokens (llama.cpp,
// tools/imatrix/imatrix.cpp and tools/perplexity/perplexity.cpp), and lose the message about it.
constexpr std::uint64_t least_tokens(unsigned context) { return std::uint64_t{2} * context; }

// Runs llama-imatrix on the model at `model`, which writes the file `into`. Fails with exit code 6 if the program
// fails, and 4 if it writes nothing.
Status compute_importance(const ImportanceComputation& computation, const std::string& model, const std::string& into,
                          const ProgramOptions& options);

// Divergences are Kullback-Leibler divergences of the predicted tokens from those of the base, in nats.
struct MeasuredQuality {
  double perplexity = 0, base_perplexity = 0;
  double divergence = 0, divergence_error = 0;  // mean, and its standard error
  double divergence_99 = 0, divergence_max = 0;
  double same_top = 0;  // share of tokens whose most likely prediction is the same, 0 to 1
};

// Runs llama-perplexity on the base model, which writes its predictions to the file `into`: about two bytes for every
// token of the vocabulary and every second token of the text.
Status write_predictions(const PerplexityOptions& quality, const std::string& model, const std::string& into,
                         const ProgramOptions& options);
// Runs it on another model and compares the predictions. Fails with exit code 6 if the program fails, and 4 if it does
// not print the results, for example because the text is too short.
Result<MeasuredQuality> measure_quality(const PerplexityOptions& quality, const std::string& model,
                                        const std::string& predictions, const ProgramOptions& options);

// Reads what llama-perplexity prints (llama.cpp, tools/perplexity/perplexity.cpp, kl_divergence). Fails with the name
// of the first number that is missing as `what`.
Result<MeasuredQuality> read_quality(const std::string& printed);

// Follows what these programs print: "computing over 100 chunks", then "[1]5.4,[2]5.1," or lines that start with the
// number of the chunk.
class ChunkCounter {
 public:
  // Returns true if the number of chunks done has changed.
  bool read(std::string_view printed);
  std::uint64_t done() const { return done_; }
  std::uint64_t total() const { return total_; }

 private:
  void read_line();
  std::string line_;
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace ggufmill
