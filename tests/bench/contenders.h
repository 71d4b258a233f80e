#pragma once
// Who takes part in which row of the bench.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "tests/bench/ggml_library.h"

namespace ggufmill::bench {

struct Contender {
  std::string name;  // see KernelTime
  std::string isa;   // empty for ggml
  std::function<void(const ggufmill_call&)> run;
};

// What one row measures.
struct Job {
  const ggufmill_kernel* kernel = nullptr;  // of whom its figures are
  bool importance = false;
  std::vector<Contender> contenders;  // the reference first, ggml second, then the modules, slowest ISA first
};

// "decode", "encode", "encode, importance"
std::string operation_of(const Job& job);

// In order of type, then operation. `isa`: beside the reference of this one alone; empty: of all. `ggml` may be null.
std::vector<Job> jobs_of(const Kernels& kernels, const std::string& isa, const GgmlLibrary* ggml);

}  // namespace ggufmill::bench
