#include "pipeline/io/platform/machine.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("this machine has usable resources") {
  CHECK(usable_cpus() >= 1);
  CHECK(usable_memory() > 1 << 20);
}
