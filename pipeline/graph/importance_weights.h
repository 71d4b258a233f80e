#pragma once
// Importance weights while they are needed: those of a matrix are read once, with the first of its slabs, and shared by
// the others.

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

// The weights of one matrix of a tensor. Their memory is a part of the cost of every slab that has them.
struct MatrixWeights {
  std::shared_ptr<const Importance> importance;
  std::uint64_t matrix = 0;
  Importance::Ranges ranges;
  std::vector<float> values;  // sums when they are read; then weights
  std::vector<float> counts;
  bool ready = false;       // guarded by the mutex of ImportanceWeights, as is what follows
  Slab* waiting = nullptr;  // read before the weights were; the first of a list
};

// Thread-safe.
class ImportanceWeights {
 public:
  struct Found {
    std::shared_ptr<MatrixWeights> weights;
    bool must_read = false;  // by whoever asked: nobody has them
  };
  Found find(const std::shared_ptr<const Importance>& importance, std::uint64_t matrix);

  // All reads of a slab are done: makes weights of what it read of importance. An error, as of
  // Importance::to_weights(), is that of the slab; the weights count as ready all the same.
  Status finish_reads(Slab& slab);
  // The slabs that can go on now: `slab`, unless it has to wait for weights, and those that have waited for its own.
  // The first of a list (Slab::next); null: none.
  Slab* ready_slabs(Slab& slab) noexcept;

 private:
  bool waits(Slab& slab) noexcept;

  std::mutex mutex_;
  // By fingerprint, columns and matrix. Weights that nobody has are gone; their entries go when there are as many of
  // them as of others, so that it costs the same however many slabs are under way.
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::weak_ptr<MatrixWeights>> known_;
  std::size_t sweep_at_ = 16;  // entries
};

}  // namespace ggufmill
