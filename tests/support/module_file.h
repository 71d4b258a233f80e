#pragma once
// A kernel module loaded from a file, for tests that ask what it computes and not how the host chooses.

#include <string>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill {

class ModuleFile {
 public:
  // Throws std::runtime_error when the file does not load, or is no module of this ABI.
  explicit ModuleFile(const std::string& path);
  ~ModuleFile();
  ModuleFile(const ModuleFile&) = delete;
  ModuleFile& operator=(const ModuleFile&) = delete;
  const ggufmill_module& module() const { return *module_; }

 private:
  void* library_;
  const ggufmill_module* module_;
};

}  // namespace ggufmill
