#include "pipeline/io/platform/linux/control_group.h"

#include <cmath>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// A root folder with the files of control groups.
class Root {
 public:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path().string() + path;
    std::filesystem::create_directories(file.parent_path());
    write_text(file.string(), text);
  }
  ControlGroup group() const { return ControlGroup(folder_.path().string()); }

 private:
  TempDir folder_;
};

}  // namespace

TEST_CASE("without control groups there is no limit") {
  const ControlGroup group = Root().group();
  CHECK(std::isinf(group.cpus()));
  CHECK(group.memory() == UINT64_MAX);
}

TEST_CASE("the limits of the own group and of its parents apply") {
  Root root;
  root.put("/proc/self/cgroup", "0::/batch/job7\n");
  root.put("/sys/fs/cgroup/batch/cpu.max", "250000 100000\n");
  root.put("/sys/fs/cgroup/batch/memory.max", "max\n");
  root.put("/sys/fs/cgroup/batch/job7/cpu.max", "max 100000\n");
  root.put("/sys/fs/cgroup/batch/job7/memory.max", "1073741824\n");
  CHECK(root.group().cpus() == 2.5);
  CHECK(root.group().memory() == 1u << 30);
}

TEST_CASE("a container that sees its own group as the root") {
  Root root;
  root.put("/proc/self/cgroup", "0::/\n");
  root.put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  CHECK(root.group().cpus() == 1.5);
}

TEST_CASE("control groups of version 1") {
  Root root;
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  CHECK(root.group().cpus() == 4);
  CHECK(root.group().memory() == 512u << 20);
}

TEST_CASE("a version 1 group without a quota has -1") {
  Root root;
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(root.group().cpus()));
}
