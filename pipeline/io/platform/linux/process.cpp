#include "pipeline/io/platform/process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "pipeline/io/platform/posix/calls.h"
#ifdef __GLIBC__
#include <nss.h>
#endif

namespace ggufmill {
namespace {

// bin/ggufmill hides these variables from the loader of the archive: they name libraries for programs of the system.
constexpr const char* kHiddenVariables[][2] = {{"GGUFMILL_LD_PRELOAD", "LD_PRELOAD"},
                                               {"GGUFMILL_LD_AUDIT", "LD_AUDIT"}};

// Instead of what /etc/nsswitch.conf names, whose modules the system has for its own C library. glibc contains these.
constexpr const char* kNameServices[][2] = {{"hosts", "files dns"}, {"passwd", "files"},   {"group", "files"},
                                            {"services", "files"},  {"networks", "files"}, {"protocols", "files"}};

}  // namespace

bool posix::end_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  if (::getppid() == parent) return true;
  errno = ESRCH;
  return false;
}

void use_own_libraries(const char* program_name) {
  ::prctl(PR_SET_NAME, program_name);  // else that of the loader
  for (const auto& [hidden, name] : kHiddenVariables)
    if (const char* const value = ::getenv(hidden)) {
      ::setenv(name, value, 1);
      ::unsetenv(hidden);
    }
#ifdef __GLIBC__
  for (const auto& [database, services] : kNameServices) ::__nss_configure_lookup(database, services);
#endif
}

}  // namespace ggufmill
