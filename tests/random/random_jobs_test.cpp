// Random jobs: each output must be the one made alone, and tensors whose values no stage changes must have those of the
// source. The seed is a new one each time and is printed.
//
//   GGUFMILL_RANDOM_SEED=N     the seed of the first job; that of each further job is one more
//   GGUFMILL_RANDOM_JOBS=N     the number of jobs; 1 repeats a single one
//   GGUFMILL_TEST_ALLOCATOR    how memory is reused; see address_allocator.cpp

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "pipeline/io/platform/filesystem.h"
#include "tests/random/job_check.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

constexpr std::uint64_t kJobs = 300;
constexpr std::size_t kShown = 3;  // faults that are printed in full

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::uint64_t new_seed() {
  std::random_device device;
  return device() % 1'000'000'000;
}

std::string described(const RandomJob& job) {
  return fmt::format(
      "{}engine: {}, I/O: {}, order of slabs: {}, bytes of a slab: {}\n", job.text(job.outputs, job.settings),
      job.settings.engine == EngineKind::kGraph ? "graph" : "simple",
      job.settings.io == IoKind::kThreads ? "threads" : "auto", job.settings.shuffle_seed, job.settings.slab_bytes);
}

void print_fault(const Context& context, std::uint64_t seed, const RandomJob& job, const std::string& fault,
                 const std::string& folder) {
  const RandomJob smaller = smaller_job(context, job, folder);
  std::cout << "GGUFMILL_RANDOM_SEED=" << seed << " GGUFMILL_RANDOM_JOBS=1: " << fault << "\n"
            << described(job) << "smaller, but wrong as well: " << check_job(context, smaller, folder).fault << "\n"
            << described(smaller) << std::endl;
}

}  // namespace

TEST_CASE("each output of a random job is the one made alone, and has the values of the source") {
  const Context context = Context::create({{}, "reference"}).value();
  const std::uint64_t first = number_from("GGUFMILL_RANDOM_SEED", new_seed());
  const std::uint64_t jobs = number_from("GGUFMILL_RANDOM_JOBS", kJobs);
  std::cout << "GGUFMILL_RANDOM_SEED=" << first << " GGUFMILL_RANDOM_JOBS=" << jobs << std::endl;
  std::size_t faults = 0, outputs = 0, tensors = 0, refused = 0;
  std::map<std::string, std::size_t> refusals;
  for (std::uint64_t seed = first; seed < first + jobs; ++seed) {
    Random random(seed);
    // The folder of CI is in memory, which has no direct I/O.
    const TempDir folder(random.percent(10) ? fs::path("/tmp") : fs::temp_directory_path());
    const RandomSource source = random_source(random, context.kernels(), folder.path());
    const RandomJob job = random_job(random, source, folder.file("out"));
    const JobCheck check = check_job(context, job, folder.path());
    outputs += check.outputs;
    tensors += check.tensors;
    refused += check.refused.size();
    for (const std::string& why : check.refused) ++refusals[why];
    if (!check.fault.empty() && ++faults <= kShown) print_fault(context, seed, job, check.fault, folder.path());
  }
  std::cout << fmt::format("{} jobs, {} outputs compared, {} tensors compared with the source, {} outputs refused\n",
                           jobs, outputs, tensors, refused);
  for (const auto& [why, count] : refusals) std::cout << fmt::format("  refused {} times: {}\n", count, why);
  std::cout << faults << " jobs with faults" << std::endl;
  CHECK(faults == 0);
  CHECK(refused <= outputs / 4);  // else the jobs test little
  if (jobs >= 100) CHECK(tensors >= outputs);
}
