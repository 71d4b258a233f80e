#pragma once
// Loads a kernel module from a file, for tests of its results that do not involve the choices of the host.

#include <string>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill {

class ModuleFile {
 public:
  // Throws std::runtime_error if the file cannot be loaded or is not a module of this ABI.
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
