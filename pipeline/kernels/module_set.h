#pragma once
// Finds kernel modules, loads them in order, keeps those that pass every check and a report on each, and chooses
// kernels from them.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/kernels/isa.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/kernels/module_check.h"

namespace ggufmill {

// A module that has passed all checks. Keeps the library in memory.
struct LoadedModule {
  std::shared_ptr<void> library;  // null for the linked-in reference
  const ggufmill_module* module = nullptr;
  const Isa* isa = nullptr;
  std::vector<ggufmill_kernel> kernels;  // copies of those that this host has a place for; never changed
  std::string path;
  std::size_t report = 0;  // index into ModuleSet::reports()
  bool is_own = false;     // one of the host's own modules, whose defects are those of the host

  KernelChoice choice(const ggufmill_kernel& kernel) const {
    return {&kernel, module, library && !is_own ? path.c_str() : nullptr};
  }
};

// Decides whether a module is first loaded by a child process: a damaged library can crash any process that loads it.
enum class Trial {
  kInChild,
  kNone,  // for the host's own modules, which were installed with it
};

// Does everything that reads a module's memory and executes its code before its first kernel. Returns why it cannot be
// loaded, else an empty string: errors in its description are for the process that uses it, which performs the same
// checks.
std::string load_and_unload(const std::string& path);

// The modules found so far, with their reports. Not thread-safe.
class ModuleSet {
 public:
  // `features` are the features of the machine; tests may pass others than cpu_features().
  explicit ModuleSet(CpuFeatures features) : features_(std::move(features)) {}

  // Adds one module; problems with it are recorded in its report.
  void add_built_in(const ggufmill_module& module);
  void add_file(const std::string& path, Trial trial = Trial::kInChild);
  // Adds all shared libraries of a directory, sorted by name. Returns false and adds a report for the directory itself
  // if it is missing or not safe.
  bool add_directory(const std::string& directory, Trial trial = Trial::kInChild);

  // In the order in which they were found.
  const std::vector<LoadedModule>& modules() const { return modules_; }
  const std::vector<ModuleReport>& reports() const { return reports_; }
  std::vector<ModuleReport>& reports() { return reports_; }
  // Includes the types added by modules.
  const Types& types() const { return types_; }

 private:
  std::string load_file(const std::string& path, Trial trial, ModuleReport& report);
  std::string accept(const ggufmill_module& module, std::shared_ptr<void> library, ModuleReport& report);
  void record(ModuleReport report, std::string refusal);

  CpuFeatures features_;
  Types types_;
  KernelOwners owners_;
  std::vector<LoadedModule> modules_;
  std::vector<ModuleReport> reports_;
};

struct Chosen {
  KernelChoice choice;
  std::size_t report = 0;  // of the module
};
using KernelTable = std::map<KernelKey, Chosen>;

// Returns the modules, best first: by the rank of the ISA, then in the order found, the linked-in reference last.
std::vector<const LoadedModule*> ranked(std::span<const LoadedModule> modules);

// Chooses the kernels; `isa` is the forced ISA or empty. The rules are those of kernels.h.
KernelTable choose(std::span<const LoadedModule> modules, std::string_view isa);

}  // namespace ggufmill
