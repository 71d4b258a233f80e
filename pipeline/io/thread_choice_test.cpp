#include "pipeline/io/machine.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the number of threads is explained") {
  CHECK(describe(CpuLimits{}) == "1 CPU");
  CHECK(describe(CpuLimits{.online = 16, .allowed = 16}) == "16 CPUs");
  CHECK(describe(CpuLimits{.online = 20, .allowed = 12, .efficiency = 4, .memory_nodes = 2}) ==
        "20 CPUs, 12 of them allowed to this process, 4 of these efficiency cores, on 2 memory nodes");
  CHECK(describe(CpuLimits{.online = 16, .allowed = 16, .quota = 2.5, .quota_file = "/sys/fs/cgroup/job/cpu.max"}) ==
        "16 CPUs; 2.5 at a time by /sys/fs/cgroup/job/cpu.max");
  CHECK(describe(CpuLimits{.online = 4, .allowed = 4, .quota = 8}) == "4 CPUs");
  CHECK(describe(CpuLimits{.online = 4, .allowed = 4, .quota = 1}) == "4 CPUs; 1 at a time by this process's job");
}

TEST_CASE("auto takes as many threads as can be busy") {
  CHECK(threads_for(0) == usable_cpus());
  CHECK(threads_for(3) == 3);
  CHECK(threads_for(1u << 30) == most_threads());
}
