#pragma once
// Measures how sensitive a model is to the quantization of each tensor: the KL divergence of its answers with only that
// tensor in a coarse type, as reported by llama.cpp's llama-perplexity.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/config/job.h"
#include "stages/quantize/objective.h"

namespace ggufmill {

class Context;

struct ProbeOptions {
  std::string perplexity;     // path of the program llama-perplexity
  std::string text;           // path of a text file, long enough for a few hundred scored tokens
  std::string type = "Q2_K";  // type of the tensor being probed
  // Path of the sensitivity file, which is updated after each tensor. A later call with the same source, text, chunks
  // and context resumes from it; a call with others is refused. While the call runs, one
  // model file is next to it. The base's answers are kept, also after an interruption, until everything has been
  // measured.
  std::string output;
  unsigned chunks = 0;                      // of the text; 0: all
  unsigned context = 256;                   // tokens per chunk
  unsigned threads = 0;                     // for the program; 0: the number of available CPUs
  const std::atomic<bool>* stop = nullptr;  // when set, ends with kInterrupted; the tensors measured so far are kept
  std::function<void(const std::string& tensor, std::size_t done, std::size_t count)> progress{};
};

// Returns the sensitivities of the tensors for which the targets of a job choose types. The job's source must be a
// single GGUF file, which the program reads as the base. Fails with exit code 6 if the program fails, 4 if it does not
// print the divergence or if `output` belongs to another source or text.
Result<Probes> probe(const Context& context, const Job& job, const ProbeOptions& options);

}  // namespace ggufmill
