#pragma once
// The plugin host: finds kernel modules, checks and ranks them, and chooses a kernel for every operation and type.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/types.h"
#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill {

struct KernelOptions {
  std::vector<std::string> directories;  // beside the host's own module directory (--kernel-dir)
  std::string isa;                       // force one (--isa); empty: the best
};

// One module that was looked at, loaded or refused.
struct ModuleReport {
  std::string path;     // "(built in)" for the linked-in reference
  std::string name, version, isa;
  bool loaded = false;
  std::string refusal;  // why not; empty when loaded
  std::size_t kernels = 0;
  std::vector<std::string> kernel_refusals;  // single kernels that were passed over, each with its reason
};

// One kernel of a loaded module.
struct KernelChoice {
  const ggufmill_kernel* kernel = nullptr;
  const ggufmill_module* module = nullptr;
};

// Immutable after load; all methods are thread-safe. Keeps the modules loaded while it lives.
class Kernels {
 public:
  // Fails (exit code 5) only when a forced ISA cannot run or does not exist, naming what can.
  static Result<std::shared_ptr<const Kernels>> load(const KernelOptions& options);

  // The chosen kernel; null when no module has one.
  const KernelChoice* decode(TypeId type) const;
  const KernelChoice* encode(TypeId type) const;
  const std::vector<ModuleReport>& reports() const;
  // Every loaded module, best first, for tests and benchmarks that drive each.
  std::vector<const ggufmill_module*> modules() const;
  std::string isa() const;  // the forced one, or the best loaded

  Kernels();
  ~Kernels();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ggufmill
