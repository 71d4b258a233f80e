#include "tests/random/job_check.h"

#include <cstddef>
#include <utility>

namespace ggufmill::testing {
namespace {

// Removes elements of `list` as long as the job has a fault.
template <class List, class HasFault>
void reduce(List& list, std::size_t least, const HasFault& has_fault) {
  for (std::size_t i = list.size(); i-- > 0 && list.size() > least;) {
    auto removed = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    if (!has_fault()) list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), std::move(removed));
  }
}

}  // namespace

JobCheck check_job(const Context& context, const RandomJob& job, const std::string& folder) {
  const std::string out = folder + "/out";
  JobCheck check;
  std::vector<RandomOutput> outputs;
  std::vector<Files> alone;
  for (const RandomOutput& output : job.outputs) {
    auto files = run_job(context, job.text({&output, 1}, {}), {}, out);
    if (!files) {
      check.refused.push_back(files.error().what);
      continue;
    }
    outputs.push_back(output);
    alone.push_back(std::move(files).value());
  }
  if (outputs.empty()) return check;
  const auto together = run_job(context, job.text(outputs, job.settings), job.settings, out);
  if (!together) {
    check.fault = "outputs that can be made alone cannot be made together: " + render(together.error());
    return check;
  }
  for (std::size_t i = 0; i < outputs.size() && check.fault.empty(); ++i) {
    const Files files = files_of(together.value(), outputs[i].name);
    check.fault = difference(context, outputs[i], alone[i], files, folder);
    if (check.fault.empty())
      check.fault = wrong_value(context, outputs[i], job.expected(outputs[i]), files, out, check.tensors);
    ++check.outputs;
  }
  return check;
}

RandomJob smaller_job(const Context& context, RandomJob job, const std::string& folder) {
  const auto has_fault = [&] { return !check_job(context, job, folder).fault.empty(); };
  reduce(job.outputs, 1, has_fault);
  reduce(job.stages, 0, has_fault);
  for (RandomOutput& output : job.outputs) reduce(output.stages, 0, has_fault);
  const RunSettings settings = std::exchange(job.settings, RunSettings{});
  if (!has_fault()) job.settings = settings;
  return job;
}

}  // namespace ggufmill::testing
