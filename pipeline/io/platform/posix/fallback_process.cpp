#include "pipeline/io/platform/posix/calls.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

bool posix::end_with(pid_t) { return true; }  // the program ends when it finds its output closed, or by itself

void use_own_libraries(const char*) {}  // only Linux has such archives

}  // namespace ggufmill
