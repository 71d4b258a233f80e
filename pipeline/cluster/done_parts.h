#pragma once
// Determines which parts of a job are done: a part is done if it has a marker and the bytes it wrote are still in
// place.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/cluster/cluster_job.h"
#include "pipeline/cluster/edges.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill {

// A marker is valid as long as every output file that the part wrote to is still the same file (by inode) with its full
// size, and the part's edge file exists. If a file has holes where the part wrote, as after being truncated and
// extended again, the affected units are read and compared with their checksums. Bytes overwritten by others are
// detected only by the seal, which reads everything. Once the seal has renamed an output to its final name, every
// marker is valid.
// If the outputs are uploads, a marker is valid as long as the server lists the chunks that the part uploaded, and its
// edge file exists. The server is asked only by check_uploads().
class DoneParts {
 public:
  // Takes a first look, like look(); if `one` is given, at that part only. `job` and `plan` must outlive this object.
  DoneParts(GGUFMILL_OUTLIVES_RESULT const ClusterJob& job, GGUFMILL_OUTLIVES_RESULT const Plan& plan,
            std::optional<std::size_t> one = {});

  // Checks the state again. Markers already read and bytes already compared are not read again.
  void look();
  // Compares the markers with what the server has. An error if it cannot be asked; does nothing if the outputs are
  // files.
  Status check_uploads();
  bool is_done(std::size_t part) const { return parts_[part].marker && parts_[part].lost.empty(); }
  // Returns true if the seal has renamed at least one output to its final name.
  bool is_published() const { return is_published_; }
  // Returns why a part with a marker is not done, for example "'out/a.gguf' is missing". Empty for all other parts.
  const std::string& lost(std::size_t part) const { return parts_[part].lost; }
  // Returns nullopt if there is no marker, or if it does not belong to this job and part.
  const std::optional<DoneMarker>& marker(std::size_t part) const { return parts_[part].marker; }

 private:
  struct Part {
    std::optional<DoneMarker> marker;
    std::string lost;
    bool was_compared = false;  // the units that lie in holes
  };
  struct Range {
    std::uint64_t first = 0, last = 0;
  };
  struct File {
    bool is_there = false;
    std::uint64_t inode = 0, bytes = 0;
    std::vector<Range> holes;  // sorted
  };
  File look_at(const std::string& path) const;
  std::string find_loss(std::size_t part);
  std::string find_lost_chunk(std::size_t part, const std::set<UploadedChunk>& there) const;
  bool lies_in_hole(const Edge& piece, const PartPlaces& places) const;
  std::string compare_holes(std::size_t part) const;

  const ClusterJob& job_;
  const Plan& plan_;
  const std::optional<std::size_t> one_;
  const std::vector<StoredFile> stored_;
  const std::vector<PartPlaces> places_;
  const SharedUploads* const uploads_;  // null if the outputs are files
  bool is_published_ = false;
  std::vector<File> files_;
  std::vector<Part> parts_;
};

// Marks a part as not done: removes its marker and leaves a journal with the marker's records, so that the next attempt
// redoes only the units whose bytes are missing.
Status undo_part(const ClusterJob& job, const Plan& plan, std::size_t part, const DoneMarker& marker);

}  // namespace ggufmill
