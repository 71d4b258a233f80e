#pragma once
// Determines which machine writes which bytes of an output that several machines write at the same time.
//
// Two clients of a network file system that write to the same page can lose bytes, even if their writes do not overlap,
// and the parts of an upload to a bucket are uploaded whole. Therefore every chunk of an output has a single writer. A
// chunk whose bytes all belong to one part is written by that part. Bytes in any other chunk, including a chunk shared
// with the header, are edges (`Edge`): the part stores them in a separate file, and the seal copies them into place
// when all parts are done.

#include <cstdint>
#include <vector>

#include "pipeline/cluster/cluster_job.h"
#include "pipeline/io/shared_uploads.h"

namespace ggufmill {

inline constexpr std::uint64_t kChunkBytes = 1 << 20;  // of files; uploads have their own (SharedUploads)

// Returns the uploads that the outputs are; null if they are files.
const SharedUploads* uploads_of(const Plan& plan);

// An edge: bytes of an output file that a part stores in its edge file.
struct Edge {
  std::size_t file = 0;  // index among the files of all outputs
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t at = 0;  // offset in the part's edge file
};

// The files that a part writes to, and its edges in them, sorted by file and offset. Depends only on the plan and the
// cuts.
struct PartPlaces {
  std::vector<std::size_t> files;  // ascending
  std::vector<Edge> edges;
  std::uint64_t edge_bytes = 0;
  std::vector<UploadedChunk> chunks;  // of uploads: those that the part writes, without tags; sorted
};
// Returns the places of `count` parts, starting with part `first`.
std::vector<PartPlaces> places_of(const Plan& plan, const std::vector<std::size_t>& cuts, std::size_t first,
                                  std::size_t count);

// Returns what the part writes to the outputs, without its edges.
std::vector<PlannedWrite> writes_outside_edges(const Plan& plan, UnitRange range, const PartPlaces& places);

// A range of an output file that nothing is written to, such as padding between tensors. It contains zeros.
struct Gap {
  std::size_t file = 0;
  std::uint64_t offset = 0, bytes = 0;
};
std::vector<Gap> gaps_of(const Plan& plan);

}  // namespace ggufmill
