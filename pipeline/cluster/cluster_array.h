#pragma once
// The jobs of a folder that `submit` made, as an engine sees them: one array of parts, and one seal for after them.
//
// Of a pipeline file with one source that is the job whose folder it is. A matrix is a job for each source, in folders
// within that of all:
//   matrix.json                       which jobs these are, and what else the matrix has
//   engine.json part.sh seal.sh log/  as of one job
//   N-SOURCE/                         a job (cluster_job.h), but for what an engine is handed
// Parts are numbered through all jobs: what an engine and a user call part 7 may be part 2 of the third job.

#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/batch.h"
#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

struct ClusterArray {
  std::string folder;  // absolute
  bool is_matrix = false;
  std::vector<ClusterJob> jobs;  // at least one; what concerns the engine is the same in all
  // Of a matrix:
  std::vector<BatchCell> left_out;  // outputs that no job makes: they were unchanged, or failed when it was submitted
  ReportRequest report;             // of all of them together

  struct Place {
    std::size_t job = 0, part = 0;  // of `jobs`; of the job
  };
  std::size_t parts() const { return jobs.back().first_part + jobs.back().parts(); }
  Place place_of(std::size_t part) const;  // `part` is below parts()
  std::string file(const std::string& inside) const { return folder + "/" + inside; }
  // What `part` and `seal` are given as --plan.
  std::string plan_file() const { return file(is_matrix ? "matrix.json" : "plan.json"); }
};

// An array, and the plan of each of its jobs.
struct PlannedArray {
  ClusterArray array;
  std::vector<Plan> plans;
};

// The array of one job.
ClusterArray array_of(ClusterJob job);

// Writes matrix.json. The jobs and their folders are there.
Status write_matrix(const ClusterArray& array);
// Exit code 2 where there is no job in the folder, or one that belongs to a matrix; 4 for what is malformed.
Result<ClusterArray> load_array(const std::string& folder);
// Whether there is a job or a matrix in it.
bool is_array_folder(const std::string& path);

}  // namespace ggufmill
