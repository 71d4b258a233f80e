#include "pipeline/io/platform/linux/control_group.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/root_folder.h"

using namespace ggufmill;

namespace {

ControlGroup group_in(const RootFolder& root) { return ControlGroup(root.path()); }

}  // namespace

TEST_CASE("without control groups there is no limit") {
  const RootFolder root;
  const ControlGroup group = group_in(root);
  CHECK(std::isinf(group.cpus()));
  CHECK(group.memory() == UINT64_MAX);
}

TEST_CASE("the limits of the own group and of its parents apply") {
  RootFolder root;
  root.put("/proc/self/cgroup", "0::/batch/job7\n");
  root.put("/sys/fs/cgroup/batch/cpu.max", "250000 100000\n");
  root.put("/sys/fs/cgroup/batch/memory.max", "max\n");
  root.put("/sys/fs/cgroup/batch/job7/cpu.max", "max 100000\n");
  root.put("/sys/fs/cgroup/batch/job7/memory.max", "1073741824\n");
  CHECK(group_in(root).cpus() == 2.5);
  CHECK(group_in(root).cpus_file() == "/sys/fs/cgroup/batch/cpu.max");
  CHECK(group_in(root).memory() == 1u << 30);
}

TEST_CASE("a container that sees its own group as the root") {
  RootFolder root;
  root.put("/proc/self/cgroup", "0::/\n");
  root.put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  CHECK(group_in(root).cpus() == 1.5);
}

TEST_CASE("control groups of version 1") {
  RootFolder root;
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  CHECK(group_in(root).cpus() == 4);
  CHECK(group_in(root).memory() == 512u << 20);
}

TEST_CASE("a version 1 group without a quota has -1") {
  RootFolder root;
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(group_in(root).cpus()));
}

TEST_CASE("groups of version 1 have parents, too, and hierarchies of their own") {
  RootFolder root;
  root.put("/proc/self/cgroup", "5:memory:/slurm/job7\n4:cpu,cpuacct:/slurm/job7/step0\n1:name=systemd:/user\n0::/\n");
  root.put("/proc/self/mountinfo",
           "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
           "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct\n"
           "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
           "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  root.put("/sys/fs/cgroup/cpu,cpuacct/slurm/job7/cpu.cfs_quota_us", "300000\n");
  root.put("/sys/fs/cgroup/cpu,cpuacct/slurm/job7/cpu.cfs_period_us", "100000\n");
  root.put("/sys/fs/cgroup/cpu,cpuacct/slurm/job7/step0/cpu.cfs_quota_us", "-1\n");
  root.put("/sys/fs/cgroup/cpu,cpuacct/slurm/job7/step0/cpu.cfs_period_us", "100000\n");
  root.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.put("/sys/fs/cgroup/memory/slurm/job7/memory.limit_in_bytes", "1073741824\n");
  CHECK(group_in(root).cpus() == 3);
  CHECK(group_in(root).cpus_file() == "/sys/fs/cgroup/cpu,cpuacct/slurm/job7/cpu.cfs_quota_us");
  CHECK(group_in(root).memory() == 1u << 30);
}

TEST_CASE("a container that sees the name of its group, but not the groups above it") {
  RootFolder root;
  root.put("/proc/self/cgroup", "0::/docker/4f2a/worker\n");
  root.put("/proc/self/mountinfo", "41 31 0:38 /docker/4f2a /my\\040groups ro,nosuid - cgroup2 cgroup rw\n");
  root.put("/my groups/cpu.max", "400000 100000\n");
  root.put("/my groups/worker/cpu.max", "350000 100000\n");
  CHECK(group_in(root).cpus() == 3.5);
}

TEST_CASE("a process that was moved out of what its container sees has the limits of the container") {
  RootFolder root;
  root.put("/proc/self/cgroup", "0::/../../elsewhere\n");
  root.put("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  root.put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(group_in(root).cpus() == 2);
}

TEST_CASE("files of groups that say nothing useful limit nothing") {
  RootFolder root;
  const char* const text = GENERATE("", "\n", "max\n", "max 100000\n", "0 100000\n", "-1 100000\n", "200000 0\n",
                                    "x y\n", "200000\n", "nan 100000\n", "99999999999999999999999 1\n");
  root.put("/sys/fs/cgroup/cpu.max", text);
  root.put("/sys/fs/cgroup/memory.max", GENERATE("", "max\n", "-1\n", "1e\n", "99999999999999999999999\n"));
  root.put("/proc/self/cgroup", GENERATE("", ":\n", "0:\n", "0::\n", "::/a/b\n", "0::/gone (deleted)\n"));
  root.put("/proc/self/mountinfo", GENERATE("", "\n", "1 2 3", "1 2 0:3 / /sys/fs/cgroup -\n", "- - - - - - -\n"));
  CHECK(group_in(root).cpus() > 1e9);
  CHECK((group_in(root).memory() == UINT64_MAX || group_in(root).memory() == 1));
}

TEST_CASE("a file of a group that cannot be read limits nothing") {
  RootFolder root;
  root.put("/sys/fs/cgroup/cpu.max/folder", "");
  root.put("/sys/fs/cgroup/memory.max/folder", "");
  CHECK(std::isinf(group_in(root).cpus()));
  CHECK(group_in(root).memory() == UINT64_MAX);
}
