#include "pipeline/cli/archive.h"

#include <openssl/crypto.h>
#include <sys/prctl.h>

#include <cstdlib>
#ifdef __GLIBC__
#include <nss.h>
#endif

#include "pipeline/core/installation.h"

namespace ggufmill {
namespace {

// bin/ggufmill hides these variables from the loader of the archive: they name libraries for programs of the system.
constexpr const char* kHiddenVariables[][2] = {{"GGUFMILL_LD_PRELOAD", "LD_PRELOAD"},
                                               {"GGUFMILL_LD_AUDIT", "LD_AUDIT"}};

// Instead of what /etc/nsswitch.conf names, whose modules the system has for its own C library. glibc contains these.
constexpr const char* kNameServices[][2] = {{"hosts", "files dns"}, {"passwd", "files"},   {"group", "files"},
                                            {"services", "files"},  {"networks", "files"}, {"protocols", "files"}};

}  // namespace

void prepare_for_archive() {
  if (!is_in_archive()) return;
  ::prctl(PR_SET_NAME, "ggufmill");  // else that of the loader
  for (const auto& [hidden, name] : kHiddenVariables)
    if (const char* const value = std::getenv(hidden)) {
      ::setenv(name, value, 1);
      ::unsetenv(hidden);
    }
#ifdef __GLIBC__
  for (const auto& [database, services] : kNameServices) ::__nss_configure_lookup(database, services);
#endif
  // The system's openssl.cnf may name providers and options that this OpenSSL does not have.
  if (!std::getenv("OPENSSL_CONF")) ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

}  // namespace ggufmill
