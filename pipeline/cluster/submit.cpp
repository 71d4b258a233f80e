#include "pipeline/cluster/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "pipeline/cluster/cut.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/core/text.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

std::string new_id() {
  std::string letters;
  std::random_device random;
  for (int i = 0; i < 6; ++i) letters += "abcdefghijklmnopqrstuvwxyz0123456789"[random() % 36];
  return letters;
}

Status check_fit(const Plan& plan, const ClusterOptions& cluster) {
  Diagnostics errors;
  if (plan.report.error)
    errors.add(usage_error("report.error measures what is lost where it is converted, which parts do not report",
                           "leave it out, and use `ggufmill compare` when the job is done"));
  if (plan.limits.io == IoMode::kDirect)
    errors.add(usage_error("limits.io: direct is not for parts, whose files others write at the same time",
                           "use streaming, which drops from memory what is written"));
  if (!plan.trace.empty())
    errors.add(usage_error("--profile is of one run, and not for parts", "profile `ggufmill run` on one machine"));
  if (cluster.memory != 0 && plan.limits.memory_is_given && plan.limits.memory > cluster.memory)
    errors.add(usage_error(fmt::format("limits.memory is {}, and a part has {} (cluster.memory)",
                                       human_bytes(plan.limits.memory), human_bytes(cluster.memory)),
                           "raise cluster.memory, or leave limits.memory out"));
  if (cluster.memory != 0 && plan.least_memory > cluster.memory / 4 * 3)
    errors.add(usage_error(fmt::format("the longest row needs {}, and a part has {} (cluster.memory)",
                                       human_bytes(plan.least_memory), human_bytes(cluster.memory)),
                           fmt::format("set cluster.memory to {}MiB or more", (plan.least_memory / 3 * 4 >> 20) + 1)));
  if (errors.empty()) return ok();
  return errors.together();
}

}  // namespace

Result<ClusterJob> make_job(const Plan& plan, const SubmitOptions& options) {
  BOOST_OUTCOME_TRY(check_fit(plan, options.cluster));
  ClusterJob job;
  const fs::path file = plan.file;
  const std::string folder =
      options.cluster.folder.empty() ? fs::path(file).replace_extension(".job").string() : options.cluster.folder;
  job.working_folder = fs::current_path().string();
  job.folder = fs::absolute(folder).lexically_normal().string();
  while (job.folder.size() > 1 && job.folder.ends_with('/')) job.folder.pop_back();
  job.name = file.stem().string();
  job.identity = identity_of(plan);
  job.id = new_id();
  job.overwrite = options.overwrite;
  job.limits = plan.limits;
  for (const std::string& directory : options.kernels.directories)
    job.kernel_directories.push_back(fs::absolute(directory).lexically_normal().string());
  job.isa = options.kernels.isa;
  job.options = options.cluster;
  ImaginedMachine machine;
  machine.isa = options.kernels.isa.empty() ? machine.isa : options.kernels.isa;
  const std::vector<double> costs = unit_costs(plan, machine);
  job.cuts = cut_plan(plan, costs, options.cluster.parts ? options.cluster.parts : usual_parts(plan));
  for (std::size_t part = 0; part < job.parts(); ++part) {
    const auto at = [&](std::size_t unit) { return costs.begin() + static_cast<std::ptrdiff_t>(unit); };
    job.costs.push_back(std::accumulate(at(job.cuts[part]), at(job.cuts[part + 1]), 0.0));
  }
  return job;
}

Status create_job(const ClusterJob& job, const Plan& plan) {
  if (is_job_folder(job.folder))
    return usage_error(fmt::format("there is a job in {} already", quoted_name(job.folder)),
                       fmt::format("`ggufmill status {0}` says how far it is, `ggufmill resume {0}` goes on with it; "
                                   "remove the folder, or name another with cluster.folder",
                                   job.folder));
  std::error_code error;
  for (const char* name : {"parts", "log"}) {
    fs::create_directories(job.file(name), error);
    if (error) return io_error(job.file(name), "create the folder", error.value());
  }
  BOOST_OUTCOME_TRY(create_outputs(job, plan));
  const Status written = write_job(job, plan);
  if (!written) static_cast<void>(remove_outputs(job, plan));
  return written;
}

Result<std::vector<std::size_t>> prepare_resume(const ClusterJob& job, const Plan& plan) {
  if (!has_outputs(job, plan)) {
    for (std::size_t part = 0; part < job.parts(); ++part) {
      BOOST_OUTCOME_TRY(undo(job, part));
    }
    BOOST_OUTCOME_TRY(create_outputs(job, plan));
  }
  std::vector<std::size_t> missing;
  for (std::size_t part = 0; part < job.parts(); ++part)
    if (!read_done(job, part)) missing.push_back(part);
  return missing;
}

Status remove_job(const ClusterJob& job) {
  for (const char* name : {"parts", "log", "plan.json", "engine.json", "part.sh", "seal.sh", "seal.lock", "seal.json",
                           "job.json"}) {  // the last is what makes it a job
    std::error_code error;
    fs::remove_all(job.file(name), error);
    if (error) return io_error(job.file(name), "remove it", error.value());
  }
  std::error_code not_empty;
  fs::remove(job.folder, not_empty);
  return ok();
}

std::string index_list(const std::vector<std::size_t>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < parts.size() && parts[last + 1] == parts[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", parts[i]);
    if (last > i) text += fmt::format("-{}", parts[last]);
    i = last;
  }
  return text;
}

}  // namespace ggufmill
