#pragma once
// The kernels that a benchmark compares: those of the modules, and of a shared library of ggml (libggml-base.so).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::bench {

class GgmlLibrary {
 public:
  // Throws std::runtime_error when `path` does not load or lacks ggml_quantize_chunk or ggml_get_type_traits.
  explicit GgmlLibrary(const std::string& path);

  // The library's kernel for the same operation and type; empty where it has none. The kernel's type must be one that
  // the library knows. What is returned holds the library in memory.
  std::function<void(const ggufmill_call&)> namesake(const ggufmill_kernel& kernel) const;

 private:
  std::shared_ptr<void> library_;
  void* quantize_;
  void* traits_;
};

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
