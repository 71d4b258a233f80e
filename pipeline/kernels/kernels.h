#pragma once
// The plugin host: finds kernel modules, checks and ranks them, and chooses a kernel for every operation and type.
//
// Modules are searched for in this order: the linked-in reference; `*.so`, sorted by name, in the host's own module
// directory (ggufmill/ next to libggufmill); `*.so`, sorted by name, in each of KernelOptions::directories. They are
// never loaded from the working directory or from a location given in a pipeline file.
//
// Modules are refused, with the reason in a ModuleReport, in these cases:
// - A file or directory is writable by everyone or by the members of a shared group, or belongs to neither root, nor
//   the user, nor the owner of the program itself, or is in a folder of which that is true, at any level. (The host's
//   own files and directories may be writable by a group, and the folders above them are not checked.)
// - Before the file is loaded, and therefore before any of its instructions run: it is not an ELF file of this machine,
//   or is damaged; the symbol is missing; magic, ABI or sizes are wrong; the ISA is unknown; or a CPU feature (of the
//   ISA or requested by the module) is missing.
// - A child process that loads it crashes or does not terminate. The host's own modules are not tried in this way.
// - After loading: a kernel breaks the rules of the ABI; two kernels have the same operation, type and encoder; a name
//   or block does not match the type; or a file with a module of the same name and ISA was loaded before. (The
//   linked-in reference and its twin, reference.so, are both loaded.)
// A module is loaded completely or not at all, except for kernels that this host has no place for: those with an
// unknown type id (below GGUFMILL_FIRST_FOREIGN_TYPE); those of a foreign type whose id or name is taken by another
// module; foreign kernels that a module of another name has as well; and searches of types for which this host has
// none. Only these kernels are skipped.
//
// For each operation, type and encoder, the kernel of the best ISA (isa.h) is chosen; among equals, that of the module
// found first, with the linked-in reference last of all.
//
// If an ISA is forced (KernelOptions::isa), only modules of that ISA are considered. A kernel that they do not have is
// an error when it is requested, and is not silently replaced by another ISA's. Only foreign kernels are served by any
// module that has them, since no choice of ISAs exists for them, and searches by the linked-in reference, which has all
// of them.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/type_module.h"
#include "pipeline/core/types.h"
#include "plugins/abi/ggufmill_covariance.h"
#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/abi/ggufmill_lattice.h"

namespace ggufmill {

struct KernelOptions {
  std::vector<std::string> directories;  // in addition to the host's own module directory (--kernel-dir)
  std::string isa;                       // forced ISA (--isa); empty: the best
};

// One module that was examined, and loaded or refused.
struct ModuleReport {
  std::string path;                // "(built in)" for the linked-in reference; a directory that was refused as a whole
  std::string name, version, isa;  // empty if it was refused before they could be read
  std::string cpu_features;        // required by the module itself, in addition to those of its ISA
  std::string xxh3;                // of the file, 32 hexadecimal digits, if it has foreign kernels; else empty
  bool loaded = false;
  std::string refusal;                       // reason; empty if loaded
  std::size_t kernels = 0;                   // number of its kernels, without those skipped
  std::size_t chosen = 0;                    // number of these that are in use
  std::vector<std::string> kernel_refusals;  // single kernels that were skipped, each with its reason
};

// One kernel of a loaded module.
struct KernelChoice {
  const ggufmill_kernel* kernel = nullptr;
  const ggufmill_module* module = nullptr;
  const char* path = nullptr;  // of the module; null for those of the host itself
};

// A call of a kernel, as ggufmill_call describes it.
struct KernelCall {
  const void* src = nullptr;
  void* dst = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  const float* importance = nullptr;
  std::uint32_t effort = 0;   // of a search
  std::uint32_t weights = 0;  // of a search

  ggufmill_call abi() const { return {src, dst, rows, cols, importance, sizeof(ggufmill_call), effort, weights, 0}; }
};

// Runs a kernel. Returns its status.
inline std::int32_t call_kernel(const KernelChoice& choice, const KernelCall& call) {
  const ggufmill_call abi = call.abi();
  return choice.kernel->run(&abi);
}

// The kernels available to a program. Immutable after load; all methods are thread-safe. Keeps the modules loaded while
// it exists.
class Kernels {
 public:
  // Fails with exit code 5 if a forced ISA does not exist, cannot run here or has no module (the error lists the
  // available ones), and if a directory of the options is missing, not safe, or contains no module. A refused module is
  // not an error.
  static Result<std::shared_ptr<const Kernels>> load(const KernelOptions& options);

  // Return the chosen kernel; null if there is none, see missing(). `method` is found in types().
  const KernelChoice* decode(TypeId type) const;
  const KernelChoice* encode(TypeId type, const EncoderMethod& method = reference_method()) const;
  // Returns the lattice kernel of a type, which is the linked-in reference's; null for types without one.
  static const ggufmill_lattice_kernel* lattice(TypeId type);
  // Returns the functions that choose levels with a covariance, which are the linked-in reference's: those for the best
  // ISA that this machine has and that is not better than a forced one.
  const ggufmill_covariance_kernels& covariance() const;
  // Returns the error for a kernel for which decode() or encode() returned null (`operation`: GGUFMILL_DECODE or
  // GGUFMILL_ENCODE); it lists the loaded modules that are not used because an ISA is forced. Exit code 5.
  Error missing(std::uint32_t operation, TypeId type, const EncoderMethod& method = reference_method()) const;

  // Returns the built-in types and those added by modules.
  const Types& types() const;
  // Returns the modules that serve foreign types and encoders, each once; nothing for others, for which all modules
  // produce the same bytes. Of a module that is built for several ISAs, it is the build for the lowest one, so that the
  // identity of a run does not depend on the machine.
  std::vector<TypeModule> modules_of(std::span<const ForeignUse> uses) const;
  // Returns for each of `kernels`, which are those of `module`, why it could not be used beside the loaded modules of
  // other names: another has its id, its name, or the same kernel. Empty if it could.
  std::vector<std::string> collisions(const ggufmill_module& module, std::span<const ggufmill_kernel> kernels) const;
  // Reports in the order in which the modules were found.
  const std::vector<ModuleReport>& reports() const;
  // Paths of the modules that were examined: the files that a run reads in addition to those of its plan.
  std::vector<std::string> files() const;
  // Warnings for the user, one line each: directories of the options in which all modules were refused, and kernels of
  // their modules that were skipped.
  const std::vector<std::string>& warnings() const;
  // Returns the encoders of a name that loaded modules have for a type, best first, for benchmarks.
  std::vector<KernelChoice> encoders(TypeId type, const EncoderMethod& method) const;
  // Returns every loaded module with its kernels, best first, for tests and benchmarks that run each of them. (The
  // table of a module of an earlier version has smaller elements than ggufmill_kernel.)
  struct ModuleKernels {
    const ggufmill_module* module;
    std::span<const ggufmill_kernel> kernels;
  };
  std::vector<ModuleKernels> modules() const;
  std::string isa() const;  // the forced ISA, or the best one loaded

  Kernels();
  ~Kernels();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ggufmill
