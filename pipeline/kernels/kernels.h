#pragma once
// The plugin host: finds kernel modules, checks and ranks them, and chooses a kernel for every operation and type.
//
// Where modules come from, in this order: the reference that is linked in; `*.so`, sorted by name, in the host's own
// module directory (ggufmill/ beside libggufmill); `*.so`, sorted by name, in each of KernelOptions::directories.
// Never the working directory, never where a pipeline file says.
//
// What is refused, with its reason in a ModuleReport:
// - a file or directory that everyone or the members of a shared group may write to, or that belongs to neither root,
//   nor the user, nor the owner of the program itself; one in a folder like that, at any depth, unless it is the
//   host's;
// - before the file is loaded, so before one instruction of it runs: no ELF file of this machine, a damaged one, no
//   symbol, magic, ABI, sizes, an unknown ISA, a CPU feature (of the ISA or asked for by the module) that is missing;
// - a child process that loads it crashes or does not come to an end. The host's own modules are not tried so;
// - once loaded: a kernel that breaks the ABI's rules, two for the same operation and type, a name or a block that is
//   not the type's; a module of the same name and ISA as a file loaded before. (The linked-in reference and its twin,
//   reference.so, are both loaded.)
// A module is loaded whole or not at all, but for kernels that this host has no place for: a type id that it does not
// know (below GGUFMILL_FIRST_FOREIGN_TYPE), or a foreign type whose id or name another module has taken. Those alone
// are passed over.
//
// Which kernel is chosen, for each operation and type: of the best ISA (isa.h); among equals, of the module that was
// found first, the linked-in reference last of all.
//
// A forced ISA (KernelOptions::isa): only modules of that ISA are chosen from. What they lack is an error when it is
// asked for, not silently another ISA's. Foreign types alone are served by whichever module has them, since an ISA
// cannot be had for them.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/type_module.h"
#include "pipeline/core/types.h"
#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill {

struct KernelOptions {
  std::vector<std::string> directories;  // beside the host's own module directory (--kernel-dir)
  std::string isa;                       // force one (--isa); empty: the best
};

// One module that was looked at, loaded or refused.
struct ModuleReport {
  std::string path;                // "(built in)" for the linked-in reference; a directory that was refused whole
  std::string name, version, isa;  // empty when it was refused before they could be read
  std::string cpu_features;        // what the module itself asks for, beside what its ISA needs
  std::string xxh3;                // of the file, 32 hexadecimal digits, where it brings a type; else empty
  bool loaded = false;
  std::string refusal;                       // why not; empty when loaded
  std::size_t kernels = 0;                   // that it has, without those passed over
  std::size_t chosen = 0;                    // of these: those that run
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
  // Fails with exit code 5 when a forced
  // ISA does not exist, cannot run or has no module (naming what can), and when a directory of the options cannot be
  // used: not there, not safe, or without any module. A refused module is no failure.
  static Result<std::shared_ptr<const Kernels>> load(const KernelOptions& options);

  // The chosen kernel; null when there is none: see missing().
  const KernelChoice* decode(TypeId type) const;
  const KernelChoice* encode(TypeId type) const;
  // The error for a kernel that decode() or encode() did not have (`operation`: GGUFMILL_DECODE or GGUFMILL_ENCODE):
  // names the loaded modules that a forced ISA keeps from use. Exit code 5.
  Error missing(std::uint32_t operation, TypeId type) const;

  // The built-in types, and those that the modules bring.
  const Types& types() const;
  // The modules whose kernels decode and encode foreign types, each once; none for other types, of which every module
  // makes the same bytes.
  std::vector<TypeModule> modules_of(std::span<const TypeInfo* const> types) const;
  // In the order found.
  const std::vector<ModuleReport>& reports() const;
  // Of the modules that were looked at: what a run reads beside its plan.
  std::vector<std::string> files() const;
  // For the user, one line each: directories of the options of whose modules all are refused.
  const std::vector<std::string>& warnings() const;
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
