#pragma once
// Finds kernel modules, loads one after the other, keeps those that pass every check and a report on each, and chooses
// from them.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/kernels/isa.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/kernels/module_check.h"

namespace ggufmill {

// The host's own module directory: ggufmill/ beside libggufmill; "../lib/ggufmill" from the folder of a program that
// has it linked in. Empty when the system does not say where that is.
std::string own_module_directory();

// A module whose checks are passed. Holds the library in memory.
struct LoadedModule {
  std::shared_ptr<void> library;  // null for the linked-in reference
  const ggufmill_module* module = nullptr;
  const Isa* isa = nullptr;
  std::vector<const ggufmill_kernel*> kernels;  // those that this host has a place for
  std::size_t report = 0;                       // index into ModuleSet::reports()
};

// Whether a module is first loaded by a child process: a damaged library can end whatever process loads it.
enum class Trial {
  kInChild,
  kNone,  // of the host's own modules, which were installed with it
};

// Not thread-safe.
class ModuleSet {
 public:
  // `features`: what the machine has; another set than cpu_features() is for tests.
  explicit ModuleSet(CpuFeatures features) : features_(std::move(features)) {}

  // Add one module; what is wrong with it is in its report.
  void add_built_in(const ggufmill_module& module);
  void add_file(const std::string& path, Trial trial = Trial::kInChild);
  // All `*.so` of a directory, sorted by name. False, and a report for the directory itself, when it is not there or
  // not safe.
  bool add_directory(const std::string& directory, Trial trial = Trial::kInChild);

  // In the order found.
  const std::vector<LoadedModule>& modules() const { return modules_; }
  const std::vector<ModuleReport>& reports() const { return reports_; }
  std::vector<ModuleReport>& reports() { return reports_; }
  // With those that the modules bring.
  const Types& types() const { return types_; }

 private:
  std::string load_file(const std::string& path, Trial trial, ModuleReport& report);
  std::string accept(const ggufmill_module& module, std::shared_ptr<void> library, ModuleReport& report);
  void record(ModuleReport report, std::string refusal);

  CpuFeatures features_;
  Types types_;
  std::vector<LoadedModule> modules_;
  std::vector<ModuleReport> reports_;
};

using KernelKey = std::pair<std::uint32_t, TypeId>;  // operation, type
struct Chosen {
  KernelChoice choice;
  std::size_t report = 0;  // of the module
};
using KernelTable = std::map<KernelKey, Chosen>;

// Best first: by the rank of the ISA, then in the order found, the linked-in reference last.
std::vector<const LoadedModule*> ranked(std::span<const LoadedModule> modules);

// `isa` forced or empty; the rules are those of kernels.h.
KernelTable choose(std::span<const LoadedModule> modules, std::string_view isa);

}  // namespace ggufmill
