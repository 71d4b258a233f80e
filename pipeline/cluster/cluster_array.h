#pragma once
// The jobs in a folder made by `submit`, as an engine sees them: one array of parts, followed by one seal.
//
// For a pipeline file with one source, the folder holds a single job. A matrix has one job per source, in subfolders of
// the matrix's folder:
//   matrix.json                       lists these jobs and everything else that belongs to the matrix
//   engine.json part.sh seal.sh log/  as for a single job
//   N-SOURCE/                         one job (cluster_job.h), without the files that belong to the engine
// Parts are numbered across all jobs: what an engine and the user call part 7 may be part 2 of the third job.

#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/batch.h"
#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

struct ClusterArray {
  std::string folder;  // absolute
  bool is_matrix = false;
  std::vector<ClusterJob> jobs;  // at least one; engine settings are identical in all jobs
  // The following members are used only for a matrix.
  std::vector<BatchCell> skipped;  // outputs without a job: unchanged, or failed at submission
  ReportRequest report;            // one report for all sources together

  struct Place {
    std::size_t job = 0, part = 0;  // index into `jobs`; index within that job
  };
  std::size_t parts() const { return jobs.back().first_part + jobs.back().parts(); }
  Place place_of(std::size_t part) const;  // requires part < parts()
  std::string file(const std::string& inside) const { return folder + "/" + inside; }
  // The path that `part` and `seal` receive as --plan.
  std::string plan_file() const { return file(is_matrix ? "matrix.json" : "plan.json"); }
};

// An array together with the plan of each of its jobs.
struct PlannedArray {
  ClusterArray array;
  std::vector<Plan> plans;
};

// Returns an array that consists of one job.
ClusterArray array_of(ClusterJob job);

// Writes matrix.json. The jobs and their folders must already exist.
Status write_matrix(const ClusterArray& array);
// Loads the array in a folder. Fails with exit code 2 if there is no job in the folder or the job belongs to a matrix,
// and with 4 if a file is malformed.
Result<ClusterArray> load_array(const std::string& folder);
// Returns true if the folder contains a job or a matrix.
bool is_array_folder(const std::string& path);

}  // namespace ggufmill
