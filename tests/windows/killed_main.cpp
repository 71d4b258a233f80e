// write_killed PATH LETTER K: writes a version of a file, and is killed before its K-th system call; with 0, writes one
// version after another until it is killed.

#include <windows.h>

#include <atomic>
#include <cstdlib>

#include "pipeline/io/platform/process.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/version.h"

using namespace ggufmill;

int main(int argc, char** argv) {
  const auto arguments = program_arguments(argc, argv);
  if (arguments.size() != 3) return 2;
  const int k = std::atoi(arguments[2].c_str());
  char letter = arguments[1][0];
  for (; k == 0; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
    if (!write_version(arguments[0], letter, IoKind::kAuto)) return 1;
  std::atomic<int> calls{0};
  const HookedCalls hooked([&] {
    if (++calls == k) ::TerminateProcess(::GetCurrentProcess(), 137);
    return 0;
  });
  return write_version(arguments[0], letter, IoKind::kAuto) ? 0 : 1;
}
