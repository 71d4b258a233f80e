#include "pipeline/io/platform/linux/cpu_limits.h"

#include <sched.h>

#include <cmath>

#include "pipeline/io/platform/linux/kernel_files.h"
#include "tests/support/catch.h"
#include "tests/support/root_folder.h"

using namespace ggufmill;

namespace {

std::vector<unsigned> cpus_between(unsigned first, unsigned last) {
  std::vector<unsigned> cpus;
  for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

TEST_CASE("lists of CPUs") {
  using List = std::vector<unsigned>;
  CHECK(kernel_list("0-3,8,10-11\n") == List{0, 1, 2, 3, 8, 10, 11});
  CHECK(kernel_list("5\n") == List{5});
  CHECK(kernel_list("\n").empty());
  CHECK(kernel_list("max").empty());
  CHECK(kernel_list("0-").empty());
  CHECK(kernel_list("3,x") == List{3});
  CHECK(kernel_list("4294967295").empty());
  CHECK(kernel_list("0-99999999999").empty());
}

TEST_CASE("all CPUs of a machine without limits are used") {
  RootFolder root;
  root.put("/sys/devices/system/cpu/online", "0-15\n");
  const CpuLimits limits = cpu_limits_in(root.path(), cpus_between(0, 15));
  CHECK(limits.usable() == 16);
  CHECK(limits.allowed == 16);
  CHECK(limits.memory_nodes == 1);
  CHECK(limits.efficiency == 0);
  CHECK(std::isinf(limits.quota));
}

TEST_CASE("an affinity mask limits the threads") {
  RootFolder root;
  root.put("/sys/devices/system/cpu/online", "0-15\n");
  root.put("/sys/devices/system/node/online", "0-1\n");
  root.put("/sys/devices/system/node/node0/cpulist", "0-7\n");
  root.put("/sys/devices/system/node/node1/cpulist", "8-15\n");
  const CpuLimits limits = cpu_limits_in(root.path(), {4, 5, 6});
  CHECK(limits.usable() == 3);
  CHECK(limits.online == 16);
  CHECK(limits.memory_nodes == 1);
  CHECK(cpu_limits_in(root.path(), {7, 8}).memory_nodes == 2);
}

TEST_CASE("a quota limits the threads, rounded up, and the least limit counts") {
  RootFolder root;
  root.put("/sys/devices/system/cpu/online", "0-15\n");
  const auto threads = [&](const char* quota, const std::vector<unsigned>& allowed) {
    root.put("/sys/fs/cgroup/cpu.max", quota);
    return cpu_limits_in(root.path(), allowed).usable();
  };
  CHECK(threads("250000 100000", cpus_between(0, 15)) == 3);
  CHECK(threads("200000 100000", cpus_between(0, 15)) == 2);
  CHECK(threads("10000 100000", cpus_between(0, 15)) == 1);
  CHECK(threads("250000 100000", {0, 1}) == 2);
  CHECK(threads("6400000 100000", cpus_between(0, 15)) == 16);
  CHECK(threads("max 100000", cpus_between(0, 15)) == 16);
}

TEST_CASE("efficiency cores are used and counted") {
  RootFolder root;
  root.put("/sys/devices/system/cpu/online", "0-19\n");
  SECTION("of Intel") {
    root.put("/sys/devices/cpu_core/cpus", "0-11\n");
    root.put("/sys/devices/cpu_atom/cpus", "12-19\n");
    CHECK(cpu_limits_in(root.path(), cpus_between(0, 19)).usable() == 20);
    CHECK(cpu_limits_in(root.path(), cpus_between(0, 19)).efficiency == 8);
    CHECK(cpu_limits_in(root.path(), cpus_between(0, 11)).efficiency == 0);
  }
  SECTION("of ARM") {
    for (const unsigned cpu : cpus_between(0, 19))
      root.put("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity", cpu < 4 ? "1024\n" : "430\n");
    CHECK(cpu_limits_in(root.path(), cpus_between(0, 19)).efficiency == 16);
    CHECK(cpu_limits_in(root.path(), cpus_between(4, 19)).efficiency == 0);
  }
}

TEST_CASE("a system without /sys and affinity masks uses the CPUs that are online") {
  const RootFolder root;
  const CpuLimits limits = cpu_limits_in(root.path(), {});
  CHECK(limits.usable() >= 1);
  CHECK(limits.allowed == limits.online);
}

TEST_CASE("a thread that is bound to a CPU has one") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const CpuLimits limits = cpu_limits();
  CHECK(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(limits.allowed == 1);
  CHECK(limits.usable() == 1);
}
