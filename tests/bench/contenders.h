#pragma once
// The kernels that a benchmark compares: those of the modules, and those of a shared ggml library (libggml-base.so).

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
  // Throws std::runtime_error if `path` does not load, or if ggml_quantize_chunk or ggml_get_type_traits is missing.
  explicit GgmlLibrary(const std::string& path);

  // Returns the library's kernel for the same operation and type, or an empty function if it has none. The library must
  // know the type of the kernel. The returned function keeps the library loaded.
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

// The measurements of one row.
struct Job {
  const ggufmill_kernel* kernel = nullptr;  // supplies the row's type and sizes
  bool importance = false;
  std::uint32_t effort = 0;           // of a search; 0: not a search
  std::vector<Contender> contenders;  // the reference first, ggml second, then the modules, slowest first
};

// Returns "decode", "encode", "encode mine", "search 1" and so on, all but the first also with ", importance".
std::string operation_of(const Job& job);

// Returns the jobs sorted by type, then operation; the searches are last, and ggml's part in them is its encoder. If
// `isa` is not empty, only that ISA is included in addition to the reference. `ggml` may be null.
std::vector<Job> jobs_of(const Kernels& kernels, const std::string& isa, const GgmlLibrary* ggml);

}  // namespace ggufmill::bench
