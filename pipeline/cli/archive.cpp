#include "pipeline/cli/archive.h"

#include <openssl/crypto.h>

#include "pipeline/core/installation.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

void prepare_for_archive() {
  if (!is_in_archive()) return;
  use_own_libraries("ggufmill");
  // The system's openssl.cnf may name providers and options that this OpenSSL does not have.
  if (!environment_variable("OPENSSL_CONF")) ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

}  // namespace ggufmill
