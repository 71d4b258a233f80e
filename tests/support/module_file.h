#pragma once
// Loads a kernel module from a file, for tests of its results that do not involve the choices of the host.

#include <memory>
#include <string>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill {

class ModuleFile {
 public:
  // Throws std::runtime_error if the file cannot be loaded or is not a module of this ABI.
  explicit ModuleFile(const std::string& path);
  const ggufmill_module& module() const { return *module_; }

 private:
  std::shared_ptr<void> library_;
  const ggufmill_module* module_;
};

// Exit code that ctest treats as a skipped test.
inline constexpr int kSkipped = 77;

// Returns the CPU features that the module or its ISA needs and that this machine does not have, separated by spaces;
// empty if the module can run.
std::string missing_here(const ggufmill_module& module);

}  // namespace ggufmill
