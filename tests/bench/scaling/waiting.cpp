#include "tests/bench/scaling/waiting.h"

#include <dlfcn.h>

#include <stdexcept>

#include "pipeline/plan/costs.h"
#include "tests/bench/scaling/waiting_kernels.h"

namespace ggufmill::bench {
namespace {

template <class Function>
Function symbol(const std::shared_ptr<void>& library, const char* name) {
  void* const found = ::dlsym(library.get(), name);
  if (!found) throw std::runtime_error(std::string("no symbol ") + name);
  return reinterpret_cast<Function>(found);
}

}  // namespace

Waiting::Waiting() {
  const std::string folder = GGUFMILL_WAITING_KERNELS;
  auto loaded = Kernels::load({{folder}, ""});
  if (!loaded) throw std::runtime_error(render(loaded.error()));
  kernels_ = std::move(loaded).value();
  library_ = {::dlopen((folder + "/waiting.so").c_str(), RTLD_NOW | RTLD_NOLOAD), [](void* library) {
                if (library) ::dlclose(library);
              }};
  const KernelChoice* const encode = kernels_->encode(type_named("Q4_K").id);
  if (!library_ || !encode || encode->module->name != std::string("waiting"))
    throw std::runtime_error("the waiting kernels are not used: " + kernels_->reports().back().refusal);
}

void Waiting::set_speeds(const std::string& isa, double slowdown) {
  const auto set = symbol<waiting_set_speed_function>(library_, WAITING_SET_SPEED);
  for (const KernelSpeed& one : kernel_speeds()) {
    if (one.isa != isa) continue;
    const waiting_speed decode{one.type.c_str(), GGUFMILL_DECODE, slowdown * 1e3 / one.decode};
    const waiting_speed encode{one.type.c_str(), GGUFMILL_ENCODE, slowdown * 1e3 / one.encode};
    set(&decode);
    set(&encode);
  }
}

void Waiting::set_slow_factor(double factor) {
  symbol<waiting_set_slow_factor_function>(library_, WAITING_SET_SLOW_FACTOR)(factor);
}

double Waiting::take_seconds() {
  return 1e-9 * static_cast<double>(symbol<waiting_take_total_function>(library_, WAITING_TAKE_TOTAL)());
}

}  // namespace ggufmill::bench
