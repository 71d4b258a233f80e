// ggufmill-module-trial FILE: loads a kernel module as the host would, and prints why it cannot be used. The host runs
// this program on systems where it cannot copy itself, so that a damaged module does not crash it.

#include <cstdio>
#include <new>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/kernels/module_set.h"

int main(int argc, char** argv) try {
  ggufmill::prepare_program();
  const auto arguments = ggufmill::program_arguments(argc, argv);
  if (arguments.size() != 1) return static_cast<int>(ggufmill::ExitCode::kUsage);
  std::fputs(ggufmill::load_and_unload(arguments[0]).c_str(), stdout);
  return 0;
} catch (const std::bad_alloc&) {
  return static_cast<int>(ggufmill::ExitCode::kTransient);
}
