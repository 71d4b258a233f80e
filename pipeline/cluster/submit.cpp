#include "pipeline/cluster/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "pipeline/cluster/cut.h"
#include "pipeline/cluster/done_parts.h"
#include "pipeline/cluster/edges.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/cluster/seal.h"
#include "pipeline/core/text.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/leftovers.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

constexpr std::size_t kIdLetters = 6;

Status check_fit(const Plan& plan, const ClusterOptions& cluster) {
  Diagnostics errors;
  if (plan.limits.io == IoMode::kDirect)
    errors.add(usage_error("limits.io: direct is not supported for parts, whose files others write at the same time",
                           "use streaming, which drops written data from the page cache"));
  if (!plan.trace.empty())
    errors.add(usage_error("--profile is for a single run, not for parts", "profile `ggufmill run` on one machine"));
  if (cluster.memory != 0 && plan.limits.memory.value_or(0) > cluster.memory)
    errors.add(usage_error(fmt::format("limits.memory is {}, but a part has {} (cluster.memory)",
                                       human_bytes(*plan.limits.memory), human_bytes(cluster.memory)),
                           "increase cluster.memory, or omit limits.memory"));
  if (cluster.memory != 0 && plan.least_memory > cluster.memory / 4 * 3)
    errors.add(usage_error(
        fmt::format("the longest rows that are encoded together need {}, but a part has {} (cluster.memory)",
                    human_bytes(plan.least_memory), human_bytes(cluster.memory)),
        fmt::format("set cluster.memory to {}MiB or more", (plan.least_memory / 3 * 4 >> 20) + 1)));
  if (errors.empty()) return ok();
  return errors.together();
}

// Outputs that are uploads: returns an error if the chunks that a part has open at a time need more memory than it has.
Status check_memory_for_uploads(const ClusterJob& job, const Plan& plan) {
  const std::vector<StoredFile> files = stored_files(plan);
  BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(files));
  if (!scheme->shared_uploads()) return ok();
  const std::vector<PartPlaces> places = places_of(plan, job.cuts, 0, job.parts());
  StoreOptions options = store_options_of(job, plan);
  for (std::size_t part = 0; part < job.parts(); ++part) {
    options.writes = writes_outside_edges(plan, job.range(part), places[part]);
    Diagnostics errors;
    scheme->check_space(files, options, errors);
    if (!errors.empty()) return errors.together();
  }
  return ok();
}

// Returns the absolute folder of the job or matrix of a pipeline file.
std::string folder_of(const fs::path& file, const ClusterOptions& cluster) {
  const fs::path folder = cluster.folder.empty() ? fs::path(file).replace_extension(".job") : fs::path(cluster.folder);
  std::string absolute = fs::absolute(folder).lexically_normal().string();
  while (absolute.size() > 1 && is_separator(absolute.back())) absolute.pop_back();
  return absolute;
}

ImaginedMachine machine_of(const SubmitOptions& options) {
  ImaginedMachine machine;
  if (!options.kernels.isa.empty()) machine.isa = options.kernels.isa;
  return machine;
}

Error already_there(const std::string& folder) {
  return usage_error(fmt::format("there is already a job in {}", quoted_name(folder)),
                     fmt::format("`ggufmill status {0}` shows its progress, `ggufmill resume {0}` resumes it; remove "
                                 "the folder, or choose another with cluster.folder",
                                 folder));
}

// Creates a folder that nobody but this user may write to, whatever the umask.
Status make_folder(const std::string& path) {
  std::error_code error;
  if (fs::create_directories(path, error))
    fs::permissions(path, fs::perms::group_write | fs::perms::others_write, fs::perm_options::remove, error);
  if (error) return io_error(path, "create the folder", error.value());
  return ok();
}

// Returns the folder name of the job of source `index` within its matrix, for example "3-Llama-8B".
std::string folder_name(std::size_t index, const std::string& source) {
  const std::string stem = fs::path(source).stem().string();
  return is_utf8(stem) ? fmt::format("{}-{}", index, stem) : std::to_string(index);
}

void skip(ClusterArray& array, std::vector<BatchCell> cells, const Error& error) {
  for (BatchCell& cell : cells) {
    cell.state = CellState::kFailed;
    cell.error = error;
    array.skipped.push_back(std::move(cell));
  }
}

// Returns an error if an earlier source of the matrix makes one of the same files.
std::optional<Error> find_clash(const Plan& plan, std::set<std::string>& paths) {
  const std::vector<StoredFile> files = stored_files(plan);
  for (const StoredFile& file : files)
    if (paths.contains(file.path))
      return Error{ExitCode::kUsage, file.path, "another source of the matrix also writes this file", "",
                   "use {name} in the path, or put sources with the same name into several pipeline files"};
  for (const StoredFile& file : files) paths.insert(file.path);
  return {};
}

}  // namespace

Result<ClusterJob> make_job(const Plan& plan, const SubmitOptions& options) {
  BOOST_OUTCOME_TRY(check_fit(plan, options.cluster));
  ClusterJob job;
  job.working_folder = fs::current_path().string();
  job.folder = job.array_folder = folder_of(plan.file, options.cluster);
  job.name = fs::path(plan.file).stem().string();
  job.identity = identity_of(plan);
  job.id = random_letters(kIdLetters);
  job.overwrite = options.overwrite;
  job.limits = plan.limits;
  for (const std::string& directory : options.kernels.directories)
    job.kernel_directories.push_back(fs::absolute(directory).lexically_normal().string());
  job.isa = options.kernels.isa;
  job.options = options.cluster;
  const std::vector<double> costs = unit_costs(plan, machine_of(options));
  job.cuts = cut_plan(plan, costs, options.cluster.parts ? options.cluster.parts : usual_parts(plan));
  for (std::size_t part = 0; part < job.parts(); ++part) {
    const auto at = [&](std::size_t unit) { return costs.begin() + static_cast<std::ptrdiff_t>(unit); };
    job.costs.push_back(std::accumulate(at(job.cuts[part]), at(job.cuts[part + 1]), 0.0));
  }
  BOOST_OUTCOME_TRY(check_memory_for_uploads(job, plan));
  return job;
}

Status check_folder_is_free(const std::string& pipeline_file, const ClusterOptions& options) {
  const std::string folder = folder_of(pipeline_file, options);
  if (is_array_folder(folder)) return already_there(folder);
  return ok();
}

Status create_job(const ClusterJob& job, const Plan& plan) {
  if (is_array_folder(job.folder)) return already_there(job.folder);
  for (const Leftover& file : find_leftovers(plan).files)
    if (file.is_in_use) return being_written(file.output);
  BOOST_OUTCOME_TRY(make_folder(job.folder));
  BOOST_OUTCOME_TRY(make_folder(job.file("parts")));
  if (uploads_of(plan)) {
    BOOST_OUTCOME_TRY(make_folder(job.file("uploads")));
  }
  BOOST_OUTCOME_TRY(create_outputs(job, plan));
  const Status written = write_job(job, plan);
  if (!written) static_cast<void>(remove_outputs(job, plan));
  return written;
}

Result<std::vector<std::size_t>> prepare_resume(const ClusterJob& job, const Plan& plan) {
  DoneParts done(job, plan);
  BOOST_OUTCOME_TRY(done.check_uploads());
  std::vector<std::size_t> missing;
  for (std::size_t part = 0; part < job.parts(); ++part) {
    if (done.is_done(part)) continue;
    missing.push_back(part);
    if (done.marker(part)) {
      BOOST_OUTCOME_TRY(undo_part(job, plan, part, *done.marker(part)));
    }
  }
  if (!done.is_published()) {
    BOOST_OUTCOME_TRY(create_outputs(job, plan));
  }
  return missing;
}

namespace {

// Removes a file, or a folder and everything in it.
Status remove_path(const std::string& path) {
  std::error_code error;
  int unreadable = 0;
  if (fs::is_directory(fs::symlink_status(path, error)))
    for (const std::string& name : names_in_folder(path, unreadable)) {
      BOOST_OUTCOME_TRY(remove_path(path + "/" + name));
    }
  fs::remove(path, error);
  if (error) return io_error(path, "remove it", error.value());
  return ok();
}

// Removes the named entries, and the folder if nothing else is in it.
Status remove_from(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    BOOST_OUTCOME_TRY(remove_path(folder + "/" + name));
  }
  std::error_code not_empty;
  fs::remove(folder, not_empty);
  return ok();
}

}  // namespace

Status remove_job(const ClusterJob& job) {
  return remove_from(job.folder,
                     {"parts", "log", "plan.json", "engine.json", "part.sh", "seal.sh", "seal.lock", "seal.json",
                      "uploads", "job.json"});  // job.json goes last: it identifies the folder as a job
}

Result<PlannedArray> plan_matrix(const Context& context, const Batch& batch, const SubmitOptions& options,
                                 const std::function<Status(const std::string& source, Job& job)>& adjust) {
  BatchOptions of_batch;
  of_batch.run.overwrite = options.overwrite;
  of_batch.adjust = adjust;
  PlannedArray planned;
  ClusterArray& array = planned.array;
  array.is_matrix = true;
  array.folder = folder_of(batch.file, options.cluster);
  array.report = batch.report;
  std::vector<Plan> plans;
  std::vector<std::size_t> sources;  // source index of each plan
  std::set<std::string> paths;
  for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
    SourcePlan source = plan_source(context, batch.jobs[i], of_batch);
    for (BatchCell& cell : source.cells)
      if (cell.state != CellState::kNotRun) array.skipped.push_back(std::move(cell));
    if (!source.plan) continue;
    if (const auto clash = find_clash(*source.plan, paths)) {
      skip(array, cells_of(*source.plan, batch.jobs[i].source), *clash);
      continue;
    }
    plans.push_back(std::move(*source.plan));
    sources.push_back(i);
  }
  if (plans.empty()) return planned;
  BOOST_OUTCOME_TRY(const auto shares, share_parts(plans, options.cluster.parts, machine_of(options)));
  for (std::size_t k = 0; k < plans.size(); ++k) {
    const std::string& source = batch.jobs[sources[k]].source;
    SubmitOptions of_job = options;
    of_job.cluster.folder = array.file(folder_name(sources[k], source));
    of_job.cluster.parts = static_cast<unsigned>(shares[k]);
    auto job = make_job(plans[k], of_job);
    if (!job) {
      skip(array, cells_of(plans[k], source), job.error());
      continue;
    }
    job.value().source = source;
    job.value().array_folder = array.folder;
    job.value().first_part = array.jobs.empty() ? 0 : array.parts();
    array.jobs.push_back(std::move(job).value());
    planned.plans.push_back(std::move(plans[k]));
  }
  return planned;
}

Status create_array(PlannedArray& planned) {
  ClusterArray& array = planned.array;
  if (is_array_folder(array.folder)) return already_there(array.folder);
  BOOST_OUTCOME_TRY(make_folder(array.folder));
  BOOST_OUTCOME_TRY(make_folder(array.file("log")));
  if (const Status trusted = check_trusted(array.folder); !trusted) {  // its parts would refuse it
    static_cast<void>(remove_array(array));
    return trusted;
  }
  if (!array.is_matrix) return create_job(array.jobs.front(), planned.plans.front());
  PlannedArray made;
  for (std::size_t i = 0; i < array.jobs.size(); ++i) {
    if (const Status created = create_job(array.jobs[i], planned.plans[i]); !created) {
      skip(array, cells_of(planned.plans[i], array.jobs[i].source), created.error());
      continue;
    }
    array.jobs[i].first_part = made.array.jobs.empty() ? 0 : made.array.parts();
    made.array.jobs.push_back(std::move(array.jobs[i]));
    made.plans.push_back(std::move(planned.plans[i]));
  }
  array.jobs = std::move(made.array.jobs);
  planned.plans = std::move(made.plans);
  if (array.jobs.empty()) return remove_array(array);
  const Status written = write_matrix(array);
  if (written) return ok();
  for (std::size_t i = 0; i < array.jobs.size(); ++i)
    static_cast<void>(remove_outputs(array.jobs[i], planned.plans[i]));
  static_cast<void>(remove_array(array));
  return written;
}

Result<std::vector<std::size_t>> prepare_resume(const PlannedArray& planned) {
  const ClusterArray& array = planned.array;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < array.jobs.size(); ++i) {
    const ClusterJob& job = array.jobs[i];
    if (is_sealed(job, planned.plans[i])) continue;
    BOOST_OUTCOME_TRY(const std::vector<std::size_t> missing, prepare_resume(job, planned.plans[i]));
    for (const std::size_t part : missing) {
      // The seal of a matrix does not wait for a part whose heartbeat reports a failure.
      if (array.is_matrix) remove_heartbeat(job, part);
      all.push_back(job.first_part + part);
    }
  }
  return all;
}

Status remove_array(const ClusterArray& array) {
  for (const ClusterJob& job : array.jobs) {
    BOOST_OUTCOME_TRY(remove_job(job));
  }
  if (!array.is_matrix) return ok();
  return remove_from(array.folder, {"log", "engine.json", "part.sh", "seal.sh", "matrix.json"});
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
