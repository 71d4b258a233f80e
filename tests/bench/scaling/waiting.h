#pragma once
// The waiting kernels, as the engine loads them.

#include <memory>
#include <string>

#include "pipeline/kernels/kernels.h"

namespace ggufmill::bench {

class Waiting {
 public:
  // Throws std::runtime_error if the module does not load.
  Waiting();

  const Kernels& kernels() const { return *kernels_; }
  // Lets the kernels need `slowdown` times as long as those of an ISA, according to the table of kernel speeds. To be
  // called while they do not run.
  void set_speeds(const std::string& isa, double slowdown);
  // From now on, the kernels of every second thread need `factor` times as long.
  void set_slow_factor(double factor);
  // Returns for how many seconds all threads together have waited since the last call.
  double take_seconds();

 private:
  std::shared_ptr<const Kernels> kernels_;
  std::shared_ptr<void> library_;
};

}  // namespace ggufmill::bench
