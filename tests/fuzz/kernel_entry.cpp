#include "tests/fuzz/kernel_entry.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "plugins/reference/reference.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/hard_inputs.h"
#include "tests/conformance/kernel_run.h"
#include "tests/fuzz/kernel_input.h"

namespace ggufmill {
namespace {

using conformance::Bytes;
using conformance::Outcome;

std::string name_of(const ggufmill_module& module) { return fmt::format("{} {}", module.name, module.isa); }

std::string describe(const ggufmill_kernel& kernel, const KernelInput& input) {
  return fmt::format("{}, {} rows of {}{}", conformance::describe(kernel), input.rows, input.cols,
                     input.importance.empty() ? "" : ", with importance");
}

Outcome outcome(const ggufmill_kernel& kernel, const KernelInput& input) {
  return conformance::try_kernel(kernel, {input.source, input.rows, input.cols, input.importance}, input.placement);
}

}  // namespace

KernelFuzz::KernelFuzz() {
  auto loaded = Kernels::load({});
  if (!loaded) throw std::runtime_error(render(loaded.error()));
  kernels_ = loaded.value();
  for (const ggufmill_module* module : kernels_->modules())
    if (module != &ggufmill_reference_module && std::string_view(module->isa) != "reference")
      modules_.push_back(module);
  if (modules_.empty()) throw std::runtime_error("no module but the reference: build ggufmill_modules; " + refused());
}

std::string KernelFuzz::modules() const {
  std::string all;
  for (const ggufmill_module* module : modules_) all += (all.empty() ? "" : ", ") + name_of(*module);
  return all;
}

std::string KernelFuzz::refused() const {
  std::string all;
  for (const ModuleReport& report : kernels_->reports())
    if (!report.loaded) all += fmt::format("{}: {}\n", report.path, report.refusal);
  return all;
}

std::string KernelFuzz::run(std::span<const std::byte> input) const {
  if (input.size() < kKernelFuzzHead) return {};
  const auto kernels = conformance::kernels_of(ggufmill_reference_module);
  const ggufmill_kernel& kernel = kernels[static_cast<std::size_t>(input[0]) % kernels.size()];
  const KernelInput work = kernel_input(kernel, input.subspan<1, 3>(), input.subspan(kKernelFuzzHead));
  const Outcome expected = outcome(kernel, work);
  for (const ggufmill_module* module : modules_) {
    const ggufmill_kernel* tested = conformance::find_kernel(*module, kernel.operation, kernel.type_id);
    if (tested == nullptr) continue;
    const Outcome found = outcome(*tested, work);
    const std::string difference = work.finite ? conformance::difference(kernel, expected, found) : "";
    if (!difference.empty()) return fmt::format("{}: {}: {}", name_of(*module), describe(kernel, work), difference);
  }
  return {};
}

std::vector<Bytes> KernelFuzz::seeds(std::uint64_t seed) const {
  constexpr std::size_t kDataBytes = 600;
  conformance::Random random(seed);
  std::vector<Bytes> all;
  const std::size_t count = conformance::kernels_of(ggufmill_reference_module).size();
  for (std::size_t kernel = 0; kernel < count; ++kernel) {
    for (unsigned kind = 0; kind < 2 * kWeightKinds; ++kind) {
      Bytes input = conformance::random_bytes(random, kKernelFuzzHead + kDataBytes);
      input[0] = static_cast<std::byte>(kernel);
      input[3] = static_cast<std::byte>(kind / 2 | (kind % 2 ? 0x80u : 0u));
      all.push_back(std::move(input));
    }
  }
  return all;
}

}  // namespace ggufmill
