#pragma once
// Importance weights, kept while they are needed. The weights of a matrix are read once, with the first of its slabs,
// and shared by the others.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "pipeline/core/importance.h"

namespace ggufmill {

struct Slab;

// The weights of one matrix of a tensor. Their memory is included in the cost of every slab that uses them.
struct MatrixWeights {
  std::shared_ptr<const Importance> importance;
  std::uint64_t matrix = 0;
  std::vector<Importance::Ranges> ranges;  // one for each of `numbers`
  std::vector<ImportanceNumbers> numbers;  // as read, until the weights are computed
  std::vector<float> values;               // the weights
  bool ready = false;                      // guarded by the mutex of ImportanceWeights, as is `waiting`
  Slab* waiting = nullptr;                 // list of slabs read before the weights were ready
};

// Thread-safe.
class ImportanceWeights {
 public:
  struct Found {
    std::shared_ptr<MatrixWeights> weights;
    bool must_read = false;  // the caller has to read the weights
  };
  Found find(const std::shared_ptr<const Importance>& importance, std::uint64_t matrix);

  // Computes weights from the importance that a slab has read; called after all its reads are done. The slab gets any
  // error of Importance::to_weights(); the weights count as ready nevertheless.
  Status finish_reads(Slab& slab);
  // Returns the slabs that can continue: `slab`, unless it has to wait for weights, and those that waited for the
  // weights it has read. Returns the first of a list linked by Slab::next, or null.
  Slab* ready_slabs(Slab& slab) noexcept;

 private:
  bool waits(Slab& slab) noexcept;

  std::mutex mutex_;
  // By fingerprint, columns and matrix. Weights are freed when no slab uses them. Expired entries are removed once they
  // may be as many as the live ones, so that the cost per call does not depend on the number of slabs in flight.
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::weak_ptr<MatrixWeights>> known_;
  std::size_t sweep_at_ = 16;  // number of entries
};

}  // namespace ggufmill
