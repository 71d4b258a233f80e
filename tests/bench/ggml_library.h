#pragma once
// The kernels of a shared library of ggml (libggml-base.so), as contenders.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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

}  // namespace ggufmill::bench
