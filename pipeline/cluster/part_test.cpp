#include "pipeline/cluster/part.h"

#include <cerrno>
#include <map>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// Returns the limits of a part with these variables in its environment.
Limits limits_with(const std::map<std::string, std::string>& environment, Limits limits = {}) {
  CHECK(take_limits(limits, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  }));
  return limits;
}

}  // namespace

TEST_CASE("without a batch system the limits are those of an ordinary run") {
  CHECK(limits_with({}).threads == 0);
  CHECK(memory_budget(limits_with({})) == memory_budget({}));
}

TEST_CASE("a part uses the processors that Slurm gives it") {
  CHECK(limits_with({{"SLURM_CPUS_PER_TASK", "12"}}).threads == 12);
}

TEST_CASE("a part uses three quarters of the memory that Slurm gives it") {
  CHECK(limits_with({{"SLURM_MEM_PER_NODE", "400"}}).memory == 300 << 20);
}

TEST_CASE("zero means all of a node's memory") { CHECK_FALSE(limits_with({{"SLURM_MEM_PER_NODE", "0"}}).memory); }

TEST_CASE("memory beyond 16 MiB per thread is not used") {
  CHECK(limits_with({{"SLURM_CPUS_PER_TASK", "64"}, {"SLURM_MEM_PER_CPU", "4096"}}).memory == std::uint64_t{1} << 30);
}

TEST_CASE("limits of the pipeline file come before those of Slurm") {
  Limits own;
  own.threads = 3;
  own.memory = 64 << 20;
  const Limits limits = limits_with({{"SLURM_CPUS_PER_TASK", "12"}, {"SLURM_MEM_PER_NODE", "4000"}}, own);
  CHECK(limits.threads == 3);
  CHECK(limits.memory == 64 << 20);
}

TEST_CASE("a variable of Slurm that is not a number is an error") {
  Limits limits;
  CHECK(take_limits(limits, [](const char*) { return "many"; }).error().code == ExitCode::kUsage);
}

TEST_CASE("errors of a network or of a full disk may pass") {
  for (const int number : {EIO, ENOSPC, ETIMEDOUT, EAGAIN, ENOMEM}) {
    CAPTURE(number);
    CHECK(may_pass(io_error("a", "write", number)));
  }
#ifdef ESTALE
  CHECK(may_pass(io_error("a", "write", ESTALE)));
  CHECK(may_pass(io_error("a", "write", EDQUOT)));
#endif
}

TEST_CASE("errors of permissions and of bad input do not pass") {
  CHECK_FALSE(may_pass(io_error("a", "write", EACCES)));
  CHECK_FALSE(may_pass(input_error("a", "NaN")));
}
