#include "pipeline/kernels/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "pipeline/core/installation.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/kernels/module_set.h"

// The linked-in reference kernels (plugins/reference). The host knows nothing of them but these symbols.
extern "C" const ggufmill_module ggufmill_reference_module;
extern "C" const ggufmill_lattice_table ggufmill_reference_lattices;
extern "C" const ggufmill_covariance_table ggufmill_reference_covariances;

namespace ggufmill {

struct Kernels::State {
  ModuleSet set{cpu_features()};
  KernelTable table;
  std::string forced;
  std::vector<std::string> warnings;
};

namespace {

// Returns the name of an encoder in KernelKey.
std::string key_name(const EncoderMethod& method) { return &method == &reference_method() ? "" : method.name; }

std::vector<std::string> loaded_isas(const ModuleSet& set) {
  std::vector<std::string> names;
  for (const LoadedModule* module : ranked(set.modules())) {
    const std::string name(module->isa->name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// Returns the module of the same name and version for the lowest ISA that is loaded: the specification of the others,
// which is the same on every machine.
const LoadedModule& lowest_of(const ModuleSet& set, const ggufmill_module& chosen) {
  const LoadedModule* lowest = nullptr;
  for (const LoadedModule& module : set.modules()) {
    const bool is_namesake = std::string_view(module.module->name) == chosen.name &&
                             std::string_view(module.module->version) == chosen.version;
    if (is_namesake && (!lowest || module.isa->rank < lowest->isa->rank)) lowest = &module;
  }
  return *lowest;
}

// Returns the modules for `isa` that were refused and the reasons, one per line.
std::string refusals_of(const ModuleSet& set, std::string_view isa) {
  std::string lines;
  for (const ModuleReport& report : set.reports())
    if (!report.loaded && report.isa == isa) lines += fmt::format("{}: {}\n", report.path, report.refusal);
  return lines;
}

Status check_forced(const ModuleSet& set, const std::string& isa) {
  const std::vector<std::string> usable = loaded_isas(set);
  if (isa.empty() || std::find(usable.begin(), usable.end(), isa) != usable.end()) return ok();
  Error error{ExitCode::kKernel, "", "", "", fmt::format("ISAs available here: {}", fmt::join(usable, ", "))};
  const Isa* known = find_isa(isa);
  const std::vector<std::string> missing =
      known ? missing_features(known->cpu_features, cpu_features()) : std::vector<std::string>();
  if (!known)
    error.what = fmt::format("unknown ISA '{}'", isa);
  else if (!missing.empty())
    error.what =
        fmt::format("ISA '{}' cannot run here: this CPU or system does not support {}", isa, fmt::join(missing, " "));
  else
    error.what = fmt::format("no kernel module for ISA '{}' is loaded", isa);
  error.detail = refusals_of(set, isa);
  return error;
}

constexpr std::size_t kMaxNamed = 3;  // of modules or reasons in a warning

// Joins the first reasons for a warning.
std::string listed(std::span<const std::string> reasons) {
  std::string text = fmt::format("{}", fmt::join(reasons.first(std::min(reasons.size(), kMaxNamed)), "; "));
  if (reasons.size() > kMaxNamed)
    text += fmt::format("; and {} more, which `ggufmill kernels` lists", reasons.size() - kMaxNamed);
  return text;
}

// Returns a warning for a directory in which all modules were refused, with the reasons from the reports from index
// `first` on. Empty if a module was loaded.
std::string all_refused(const ModuleSet& set, const std::string& directory, std::size_t first) {
  std::vector<std::string> reasons;
  for (const ModuleReport& report : std::span(set.reports()).subspan(first)) {
    if (report.loaded) return {};
    reasons.push_back(fmt::format("{}: {}", fs::path(report.path).filename().string(), report.refusal));
  }
  return fmt::format("no kernel module in '{}' can be used: {}", directory, listed(reasons));
}

Status add_asked_directory(ModuleSet& set, const std::string& directory, std::vector<std::string>& warnings) {
  const std::size_t before = set.reports().size();
  if (!set.add_directory(directory))
    return Error{ExitCode::kKernel, "",
                 fmt::format("kernel directory '{}' {}", directory, set.reports().back().refusal), "",
                 "--kernel-dir must name a folder of kernel modules (*" GGUFMILL_MODULE_ENDING ")"};
  if (set.reports().size() == before)
    return Error{
        ExitCode::kKernel, "",
        fmt::format("kernel directory '{}' contains no kernel modules (*" GGUFMILL_MODULE_ENDING ")", directory), "",
        "omit it, or build the module into it"};
  if (std::string refused = all_refused(set, directory, before); !refused.empty()) {
    warnings.push_back(std::move(refused));
    return ok();
  }
  for (const ModuleReport& report : std::span(set.reports()).subspan(before))
    if (!report.kernel_refusals.empty())
      warnings.push_back(fmt::format("kernels of '{}' are not used: {}", report.path, listed(report.kernel_refusals)));
  return ok();
}

}  // namespace

Kernels::Kernels() : state_(std::make_unique<State>()) {}
Kernels::~Kernels() = default;

Result<std::shared_ptr<const Kernels>> Kernels::load(const KernelOptions& options) {
  auto kernels = std::make_shared<Kernels>();
  State& state = *kernels->state_;
  state.set.add_built_in(ggufmill_reference_module);
  const std::string own = own_data_folder();
  if (std::error_code error; fs::exists(own, error)) state.set.add_directory(own, Trial::kNone);
  for (const std::string& directory : options.directories) {
    BOOST_OUTCOME_TRY(add_asked_directory(state.set, directory, state.warnings));
  }
  BOOST_OUTCOME_TRY(check_forced(state.set, options.isa));
  state.forced = options.isa;
  state.table = choose(state.set.modules(), options.isa);
  for (const auto& [key, chosen] : state.table) ++state.set.reports()[chosen.report].chosen;
  return std::shared_ptr<const Kernels>(std::move(kernels));
}

const KernelChoice* Kernels::decode(TypeId type) const {
  const auto found = state_->table.find({GGUFMILL_DECODE, type, ""});
  return found == state_->table.end() ? nullptr : &found->second.choice;
}

const KernelChoice* Kernels::encode(TypeId type, const EncoderMethod& method) const {
  const auto found = state_->table.find({GGUFMILL_ENCODE, type, key_name(method)});
  return found == state_->table.end() ? nullptr : &found->second.choice;
}

const ggufmill_lattice_kernel* Kernels::lattice(TypeId type) {
  const std::span kernels(ggufmill_reference_lattices.kernels, ggufmill_reference_lattices.count);
  const auto found = std::ranges::find(kernels, type, &ggufmill_lattice_kernel::type_id);
  return found == kernels.end() ? nullptr : &*found;
}

const ggufmill_covariance_kernels& Kernels::covariance() const {
  const std::span kernels(ggufmill_reference_covariances.kernels, ggufmill_reference_covariances.count);
  const Isa* const forced = find_isa(state_->forced);
  for (std::size_t i = kernels.size(); --i > 0;) {
    const Isa& isa = *find_isa(kernels[i].isa);
    if (missing_features(isa.cpu_features, cpu_features()).empty() && (!forced || isa.rank <= forced->rank))
      return kernels[i];
  }
  return kernels.front();
}

std::vector<KernelChoice> Kernels::encoders(TypeId type, const EncoderMethod& method) const {
  const KernelKey key{GGUFMILL_ENCODE, type, key_name(method)};
  std::vector<KernelChoice> choices;
  for (const LoadedModule* module : ranked(state_->set.modules()))
    for (const ggufmill_kernel& kernel : module->kernels)
      if (key_of(kernel) == key) choices.push_back(module->choice(kernel));
  return choices;
}

Error Kernels::missing(std::uint32_t operation, TypeId type, const EncoderMethod& method) const {
  const KernelKey key{operation, type, key_name(method)};
  const TypeInfo* info = types().find(type);
  if (!info) info = find_source_type(type);
  std::vector<std::string> have;
  for (const LoadedModule* module : ranked(state_->set.modules()))
    for (const ggufmill_kernel& kernel : module->kernels)
      if (key_of(kernel) == key) have.push_back(fmt::format("{} ({})", module->module->name, module->isa->name));
  Error error{ExitCode::kKernel, "", "", "",
              "`ggufmill types` lists what can be read and written, `ggufmill kernels` the modules"};
  error.what = fmt::format("no kernel {} type '{}'", operation == GGUFMILL_ENCODE ? "encodes" : "decodes",
                           info ? std::string(info->name) : std::to_string(type));
  if (&method != &reference_method()) error.what += fmt::format(" with the encoder '{}'", method.name);
  if (!state_->forced.empty()) error.what += fmt::format(" for the forced ISA '{}'", state_->forced);
  if (!have.empty()) error.detail = fmt::format("modules that have one: {}", fmt::join(have, ", "));
  return error;
}

const Types& Kernels::types() const { return state_->set.types(); }

std::vector<TypeModule> Kernels::modules_of(std::span<const ForeignUse> uses) const {
  std::vector<TypeModule> modules;
  const auto add = [&](const ForeignUse& use, std::uint32_t operation) {
    const std::string encoder = use.method ? key_name(*use.method) : "";
    const auto chosen = state_->table.find({operation, use.type->id, encoder});
    if (chosen == state_->table.end() || !is_foreign_kernel(*chosen->second.choice.kernel)) return;
    const ModuleReport& report = reports()[lowest_of(state_->set, *chosen->second.choice.module).report];
    TypeModule module{std::string(use.type->name), encoder, report.name, report.version, report.xxh3};
    if (std::ranges::find(modules, module) == modules.end()) modules.push_back(std::move(module));
  };
  for (const ForeignUse& use : uses) {
    if (!use.method) add(use, GGUFMILL_DECODE);
    add(use, GGUFMILL_ENCODE);
  }
  return modules;
}

std::vector<std::string> Kernels::collisions(const ggufmill_module& module,
                                             std::span<const ggufmill_kernel> kernels) const {
  Types types;
  KernelOwners owners;
  std::vector<ggufmill_kernel> usable;
  std::vector<std::string> passed_over, reasons;
  for (const LoadedModule& other : state_->set.modules())
    if (std::string_view(other.module->name) != module.name)
      check_kernels(*other.module, types, owners, usable, passed_over);
  for (const ggufmill_kernel& kernel : kernels) reasons.push_back(find_place(kernel, module, types, owners));
  return reasons;
}

const std::vector<ModuleReport>& Kernels::reports() const { return state_->set.reports(); }

std::vector<std::string> Kernels::files() const {
  std::vector<std::string> files;
  for (const ModuleReport& report : reports())
    if (name_begin(report.path) != 0) files.push_back(report.path);  // the others are built in
  return files;
}

const std::vector<std::string>& Kernels::warnings() const { return state_->warnings; }

std::vector<Kernels::ModuleKernels> Kernels::modules() const {
  std::vector<ModuleKernels> modules;
  for (const LoadedModule* module : ranked(state_->set.modules())) modules.push_back({module->module, module->kernels});
  return modules;
}

std::string Kernels::isa() const {
  if (!state_->forced.empty()) return state_->forced;
  const auto order = ranked(state_->set.modules());
  return order.empty() ? std::string() : std::string(order.front()->isa->name);
}

}  // namespace ggufmill
