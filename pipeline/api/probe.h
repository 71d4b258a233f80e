#pragma once
// How much each tensor of a model matters, measured by its answers: the KL divergence with that tensor alone of a
// coarse type, as llama.cpp's llama-perplexity gives it.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/config/job.h"
#include "stages/quantize/objective.h"

namespace ggufmill {

class Context;

struct ProbeOptions {
  std::string perplexity;     // the program llama-perplexity
  std::string text;           // a file of text, enough for some hundred scored tokens
  std::string type = "Q2_K";  // that each tensor has in its turn
  // Where the sensitivities go, after each tensor: a later call of the same source, text, chunks and context goes on
  // from there, and one of others is refused. Beside it lie, while it runs, one model file, and the base's answers,
  // which stay until all is measured.
  std::string output;
  unsigned chunks = 0;     // of the text; 0: all
  unsigned context = 256;  // tokens of a chunk
  unsigned threads = 0;    // of the program; 0: as many as the machine gives
  // Runs a program to its end and gives what it printed, both on standard output and standard error.
  std::function<Result<std::string>(const std::vector<std::string>& words)> run_program;
  const std::atomic<bool>* stop = nullptr;  // once it is set, it ends with kInterrupted after the tensor under way
  std::function<void(const std::string& tensor, std::size_t done, std::size_t count)> progress{};
};

// Of the tensors that the targets of a job choose for. The job's source has to be a GGUF, which the program reads as
// the base. Exit code 6 where the program fails, 4 where it does not say the divergence, and where `output` is of
// another source or text.
Result<Probes> probe(const Context& context, const Job& job, const ProbeOptions& options);

// "Mean    KLD:   0.001234 ±   0.000005" in what the program printed; none where it is not there.
std::optional<double> divergence_in(const std::string& printed);

}  // namespace ggufmill
