#include "pipeline/graph/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/covariance.h"
#include "pipeline/core/text.h"
#include "pipeline/graph/slab.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill {
namespace {

static_assert(kMetricTile == GGUFMILL_METRIC_TILE && kLevelRows == GGUFMILL_LEVEL_ROWS &&
              kLevelBytesPerColumn == GGUFMILL_LEVEL_BYTES_PER_COLUMN);
constexpr std::uint64_t kTileNumbers = kMetricTile * kMetricTile;

std::uint64_t tile_index(std::uint64_t row, std::uint64_t column) { return column * (column + 1) / 2 + row; }

// The covariance of a file: reads it, and shrinks and damps it. Its memory is the end of the metric's.
class CovarianceOfFile {
 public:
  CovarianceOfFile(const CovarianceSources& sources, const Metric& metric)
      : sources_(sources), metric_(metric), covariance_(*metric.use.covariance), shrink_(metric.use.shrink) {}

  // Returns false if all sums are 0. `rest` has room for 2 * columns numbers of 64 bits, `halves` for a row of tiles.
  Result<bool> start(double* rest, std::uint16_t* halves) {
    const std::uint64_t columns = covariance_.columns;
    roots_ = {rest, columns};
    auto* const floats = reinterpret_cast<float*>(rest + columns);
    diagonal_ = {floats, columns};
    row_ = {floats + columns, columns};
    halves_ = halves;
    return read_sums();
  }

  double variance(std::uint64_t column) const { return double{diagonal_[column]} + damping_; }
  void set_shrink(double shrink) { shrink_ = shrink; }

  // Reads the held-out vectors. `halves` has room for one. Returns false if all are zeros.
  Result<bool> read_vectors(std::span<std::uint16_t> halves, std::span<float> vectors) const {
    const Extent extent = covariance_.vectors_of(metric_.matrix);
    for (std::uint64_t at = 0; at < vectors.size(); at += halves.size()) {
      BOOST_OUTCOME_TRY(
          sources_.vectors->read(extent.offset + at * sizeof(std::uint16_t), std::as_writable_bytes(halves)));
      if (extent.big_endian) swap_words(sizeof(std::uint16_t), std::as_writable_bytes(halves));
      const std::span<float> vector = vectors.subspan(at, halves.size());
      if (const std::size_t bad = decode_vectors(halves, vector); bad != halves.size())
        return covariance_.bad_vector(metric_.matrix, at + bad, vector[bad]);
    }
    return std::ranges::any_of(vectors, [](float number) { return number != 0; });
  }

  // Calls put(i, j, H_ij) for i <= j; columns are counted in the block. Reads the rows of one row of tiles at a time.
  template <class Put>
  Status fill(const CorrelatedColumns& columns, const Put& put) {
    const Extent extent = covariance_.correlations_of(metric_.matrix);
    for (std::uint64_t first = 0; first < columns.count; first += kMetricTile) {
      const std::uint64_t end = std::min(first + kMetricTile, columns.count);
      const std::uint64_t from = CorrelationPacking::row_start(columns.count, first);
      const std::uint64_t to = CorrelationPacking::row_start(columns.count, end);
      const std::span halves(halves_, to - from);
      if (!halves.empty()) {
        const std::uint64_t offset = extent.offset + (columns.packed + from) * sizeof(std::uint16_t);
        BOOST_OUTCOME_TRY(sources_.correlations.read(offset, std::as_writable_bytes(halves)));
        if (extent.big_endian) swap_words(sizeof(std::uint16_t), std::as_writable_bytes(halves));
      }
      for (std::uint64_t i = first; i < end; ++i) {
        const std::uint64_t start = CorrelationPacking::row_start(columns.count, i) - from,
                            others = columns.count - 1 - i;
        const std::span row = row_.first(others);
        if (const std::size_t bad = decode_correlations(halves.subspan(start, others), row); bad != others)
          return covariance_.bad_correlation(metric_.matrix, columns.packed + from + start + bad, row[bad]);
        const double root = roots_[columns.first + i];
        put(i, i, variance(columns.first + i));
        for (std::uint64_t j = 0; j < others; ++j)
          put(i, i + 1 + j, shrink_ * double{row[j]} * root * roots_[columns.first + i + 1 + j]);
      }
    }
    return ok();
  }

 private:
  Result<bool> read_sums() {
    const Extent extent = covariance_.sums_of(metric_.matrix);
    BOOST_OUTCOME_TRY(sources_.sums.read(extent.offset, std::as_writable_bytes(diagonal_)));
    if (extent.big_endian) swap_words(sizeof(float), std::as_writable_bytes(diagonal_));
    double all = 0;
    for (std::uint64_t i = 0; i < diagonal_.size(); ++i) {
      const float sum = diagonal_[i];
      if (!std::isfinite(sum) || sum < 0) return covariance_.bad_sum(metric_.matrix, i, sum);
      all += double{sum};
      roots_[i] = std::sqrt(double{sum});
    }
    damping_ = metric_.use.damp * (all / static_cast<double>(diagonal_.size()));
    return all > 0;
  }

  const CovarianceSources sources_;
  const Metric& metric_;
  const Covariance& covariance_;
  double shrink_;
  std::span<double> roots_;          // of the sums
  std::span<float> diagonal_, row_;  // diagonal_: the sums
  std::uint16_t* halves_ = nullptr;  // of a row of tiles
  double damping_ = 0;
};

// A covariance in memory, which is taken as it is.
class CovarianceInMemory {
 public:
  CovarianceInMemory(std::span<const double> elements, std::uint64_t columns)
      : elements_(elements), columns_(columns) {}

  Result<bool> start(double*, std::uint16_t*) const { return true; }
  double variance(std::uint64_t column) const { return elements_[column * columns_ + column]; }
  void set_shrink(double) {}
  Result<bool> read_vectors(std::span<std::uint16_t>, std::span<float>) const { return false; }
  template <class Put>
  Status fill(const CorrelatedColumns& columns, const Put& put) const {
    for (std::uint64_t i = 0; i < columns.count; ++i)
      for (std::uint64_t j = i; j < columns.count; ++j) put(i, j, elements_[i * columns_ + j]);
    return ok();
  }

 private:
  const std::span<const double> elements_;
  const std::uint64_t columns_;
};

// The rows of the trial that chooses a shrinkage: random numbers, and their rounding to whole numbers, as rows of Q8_0
// whose scales are 1. The errors of a fine rounding do not depend much on what is rounded, so the trial stands for all
// matrices and types with this input.
class Trial {
 public:
  static constexpr std::uint64_t kBlock = 32;  // columns of a block of Q8_0

  // `memory`: trial_bytes() of the covariance.
  Trial(std::span<std::byte> memory, std::uint64_t columns)
      : columns_(columns),
        chosen_(memory.first(kTrialRows * columns * kLevelBytesPerColumn)),
        weights_(reinterpret_cast<float*>(chosen_.data() + chosen_.size()), kTrialRows * columns),
        encoded_(reinterpret_cast<std::byte*>(weights_.data() + weights_.size()), kTrialRows * row_bytes()) {
    constexpr std::uint16_t kOne = 0x3c00;
    constexpr float kRange = 200, kUnit = 0x1p-24f;
    for (std::uint64_t i = 0; i < weights_.size(); ++i)
      weights_[i] = (static_cast<float>(mixed(i) >> 40) * kUnit - 0.5f) * kRange;
    for (std::uint64_t i = 0; i < weights_.size(); ++i) {
      if (i % kBlock == 0) std::memcpy(block_of(i), &kOne, sizeof kOne);
      block_of(i)[2 + i % kBlock] = static_cast<std::byte>(static_cast<int>(std::nearbyint(weights_[i])));
    }
  }

  // Chooses the numbers with a metric, unless it is null, and returns the losses.
  HalfLosses losses(const ggufmill_covariance_kernels& kernels, const ggufmill_metric* metric,
                    std::span<const float> vectors, const ForEach& for_each) {
    std::array<HalfLosses, kTrialRows / kLevelRows> losses{};
    for_each(kTrialRows / kLevelRows, [&](std::uint64_t group) {
      const std::uint64_t first = group * kLevelRows;
      std::byte* const memory = chosen_.data() + first * columns_ * kLevelBytesPerColumn;
      const float* const weights = weights_.data() + first * columns_;
      if (metric) {
        const ggufmill_level_call call{type_named("Q8_0").id,
                                       kSweeps,
                                       kLevelRows,
                                       columns_,
                                       weights,
                                       encoded_.data() + first * row_bytes(),
                                       metric,
                                       memory};
        kernels.choose_levels(&call);
      }
      auto* const decoded = reinterpret_cast<float*>(memory);
      for (std::uint64_t i = 0; i < kLevelRows * columns_; ++i)
        decoded[i] = static_cast<float>(static_cast<std::int8_t>(block_of(first * columns_ + i)[2 + i % kBlock]));
      ggufmill_loss_call call{};
      call.rows = kLevelRows;
      call.cols = columns_;
      call.weights = weights;
      call.decoded = decoded;
      call.memory = decoded + kLevelRows * columns_;
      losses[group] = losses_of(kernels, call, vectors);
    });
    HalfLosses all;
    for (const HalfLosses& each : losses) all = {all.first + each.first, all.second + each.second};
    return all;
  }

 private:
  static constexpr std::uint32_t kSweeps = 2;

  // SplitMix64 of a number (Steele, Lea and Flood, 2014).
  static std::uint64_t mixed(std::uint64_t number) {
    std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t row_bytes() const { return columns_ / kBlock * (kBlock + 2); }
  std::byte* block_of(std::uint64_t number) { return encoded_.data() + number / kBlock * (kBlock + 2); }

  std::uint64_t columns_;
  std::span<std::byte> chosen_;
  std::span<float> weights_;
  std::span<std::byte> encoded_;
};

// Makes the tiles of a metric. While it is factored, a block of columns has tiles of 64-bit numbers, in the memory that
// its two sets of tiles of 32-bit numbers occupy afterwards; so its elements are read twice.
template <class Elements>
class MetricMaker {
 public:
  MetricMaker(const ggufmill_covariance_kernels& kernels, Elements elements, const ForEach& for_each,
              const std::function<bool()>& stopped, Metric& metric)
      : kernels_(kernels),
        elements_(std::move(elements)),
        for_each_(for_each),
        stopped_(stopped),
        metric_(metric),
        packing_(metric.use.covariance->packing()) {}

  Status make() {
    const Covariance& covariance = *metric_.use.covariance;
    const std::uint64_t cost = metric_.cost - covariance.vector_bytes() - covariance.trial_bytes();
    BOOST_OUTCOME_TRY(metric_.memory, Buffer::allocate(cost));
    const std::uint64_t columns = packing_.columns();
    std::byte* const start = metric_.memory.data();
    auto* const floats = reinterpret_cast<float*>(start + cost - columns * sizeof(double));
    inverse_a_ = {floats, columns};
    inverse_h_ = {floats + columns, columns};
    std::byte* const rest = start + cost - columns * 4 * sizeof(double);
    const std::uint64_t row_of_tiles = std::min(packing_.block(), columns) * kMetricTile;
    BOOST_OUTCOME_TRY(const bool has_sums,
                      elements_.start(reinterpret_cast<double*>(rest),
                                      reinterpret_cast<std::uint16_t*>(rest - row_of_tiles * sizeof(std::uint16_t))));
    if (!has_sums) return ok();
    metric_.shrink = metric_.use.shrink;
    if (metric_.use.shrink < 0) {
      BOOST_OUTCOME_TRY(metric_.has_helped, choose_shrink());
      if (!metric_.has_helped || stopped_()) return ok();
    }
    std::byte* tiles = start;
    for (std::uint64_t block = 0; block < packing_.blocks(); ++block) {
      BOOST_OUTCOME_TRY(const bool is_made, make_block(packing_.columns_of(block), tiles));
      if (!is_made) return ok();
    }
    metric_.values = values();
    metric_.is_usable = true;
    return ok();
  }

 private:
  ggufmill_metric values() const {
    return {packing_.columns(), packing_.block(), reinterpret_cast<const float*>(metric_.memory.data()),
            inverse_a_.data(), inverse_h_.data()};
  }

  // Reads the held-out vectors, and sets the shrinkage. Returns false if the nearest numbers are better than all
  // others, or if there are no vectors.
  Result<bool> choose_shrink() {
    const Covariance& covariance = *metric_.use.covariance;
    const std::uint64_t columns = packing_.columns();
    BOOST_OUTCOME_TRY(metric_.vector_memory, Buffer::allocate(covariance.vector_bytes()));
    BOOST_OUTCOME_TRY(const Buffer memory, Buffer::allocate(covariance.trial_bytes()));
    std::span vectors(reinterpret_cast<float*>(metric_.vector_memory.data()), covariance.held_out * columns);
    BOOST_OUTCOME_TRY(const bool has_vectors,
                      elements_.read_vectors({reinterpret_cast<std::uint16_t*>(memory.data()), columns}, vectors));
    if (!has_vectors || columns % Trial::kBlock != 0) return false;
    while (std::ranges::all_of(vectors.last(columns), [](float number) { return number == 0; }))
      vectors = vectors.first(vectors.size() - columns);
    metric_.vectors = vectors;
    Trial trial(memory.span(), columns);
    const HalfLosses nearest = trial.losses(kernels_, nullptr, vectors, for_each_);
    double least = 1;
    for (const double shrink : kShrinks) {
      if (stopped_()) break;
      BOOST_OUTCOME_TRY(fill_without_factor(shrink));
      const ggufmill_metric metric = values();
      const double share = trial.losses(kernels_, &metric, vectors, for_each_).worst_share_of(nearest);
      if (!(share < least)) continue;
      least = share;
      metric_.shrink = shrink;
    }
    elements_.set_shrink(metric_.shrink);
    return least < 1;
  }

  // Fills all tiles for a choice without error feedback, which would need a factor: that of the trial costs much less.
  Status fill_without_factor(double shrink) {
    elements_.set_shrink(shrink);
    std::byte* tiles = metric_.memory.data();
    for (std::uint64_t block = 0; block < packing_.blocks(); ++block) {
      const CorrelatedColumns columns = packing_.columns_of(block);
      const std::uint64_t numbers = numbers_of(columns.count);
      std::memset(tiles, 0, numbers * sizeof(float));
      BOOST_OUTCOME_TRY(fill_h(columns, reinterpret_cast<float*>(tiles) + numbers));
      tiles += numbers * sizeof(double);
      for (std::uint64_t i = columns.first; i < columns.first + columns.count; ++i) {
        inverse_a_[i] = 0;
        inverse_h_[i] = static_cast<float>(1 / elements_.variance(i));
      }
    }
    return ok();
  }

  // Returns how many numbers the tiles of a block have.
  static std::uint64_t numbers_of(std::uint64_t columns) {
    const std::uint64_t count = (columns + kMetricTile - 1) / kMetricTile;
    return count * (count + 1) / 2 * kTileNumbers;
  }

  Status fill_h(const CorrelatedColumns& columns, float* h) {
    std::memset(h, 0, numbers_of(columns.count) * sizeof(float));
    return elements_.fill(columns, [&](std::uint64_t i, std::uint64_t j, double value) {
      float* const tile = h + tile_index(i / kMetricTile, j / kMetricTile) * kTileNumbers;
      const std::uint64_t row = i % kMetricTile, column = j % kMetricTile;
      tile[column * kMetricTile + row] = static_cast<float>(value);
      if (i / kMetricTile == j / kMetricTile) tile[row * kMetricTile + column] = static_cast<float>(value);
    });
  }

  // Advances `tiles` to the memory of the next block. Returns false if the matrix cannot be factored.
  Result<bool> make_block(const CorrelatedColumns& columns, std::byte*& tiles) {
    const std::uint64_t count = (columns.count + kMetricTile - 1) / kMetricTile, numbers = numbers_of(columns.count);
    auto* const wide = reinterpret_cast<double*>(tiles);
    std::memset(tiles, 0, numbers * sizeof(double));
    BOOST_OUTCOME_TRY(elements_.fill(columns, [&](std::uint64_t i, std::uint64_t j, double value) {
      wide[tile_index(i / kMetricTile, j / kMetricTile) * kTileNumbers + j % kMetricTile * kMetricTile +
           i % kMetricTile] = value;
    }));
    if (stopped_() || !factor(wide, count, columns.count)) return false;
    keep_factor(columns, tiles, numbers);
    BOOST_OUTCOME_TRY(fill_h(columns, reinterpret_cast<float*>(tiles) + numbers));
    tiles += numbers * sizeof(double);
    return true;
  }

  // From the last column of tiles to the first.
  bool factor(double* tiles, std::uint64_t count, std::uint64_t columns) const {
    const auto tile = [&](std::uint64_t row, std::uint64_t column) {
      return tiles + tile_index(row, column) * kTileNumbers;
    };
    for (std::uint64_t column = count; column-- > 0;) {
      if (stopped_()) return false;
      const std::uint64_t width = std::min(kMetricTile, columns - column * kMetricTile);
      for_each_(column + 1, [&](std::uint64_t row) {
        for (std::uint64_t k = count; k-- > column + 1;)
          kernels_.update(tile(row, column), tile(row, k), tile(column, k));
      });
      if (kernels_.diagonal(tile(column, column), width) != 0) return false;
      for_each_(column, [&](std::uint64_t row) { kernels_.solve(tile(row, column), tile(column, column), width); });
    }
    return true;
  }

  // Rounds the factor to 32 bits in place.
  void keep_factor(const CorrelatedColumns& columns, std::byte* tiles, std::uint64_t numbers) {
    const auto* const wide = reinterpret_cast<const double*>(tiles);
    for (std::uint64_t i = 0; i < columns.count; ++i) {
      const std::uint64_t tile = i / kMetricTile, inside = i % kMetricTile, column = columns.first + i;
      inverse_a_[column] =
          static_cast<float>(1 / wide[tile_index(tile, tile) * kTileNumbers + inside * kMetricTile + inside]);
      inverse_h_[column] = static_cast<float>(1 / elements_.variance(column));
    }
    for (std::uint64_t i = 0; i < numbers; ++i) {
      double from = 0;
      std::memcpy(&from, tiles + i * sizeof from, sizeof from);
      const auto to = static_cast<float>(from);
      std::memcpy(tiles + i * sizeof to, &to, sizeof to);
    }
  }

  const ggufmill_covariance_kernels& kernels_;
  Elements elements_;
  const ForEach& for_each_;
  const std::function<bool()>& stopped_;
  Metric& metric_;
  const CorrelationPacking packing_;
  std::span<float> inverse_a_, inverse_h_;
};

std::string key_of(const MetricUse& use, std::uint64_t matrix) {
  return fmt::format("{} {} {} {}", use.covariance->key(), matrix, use.shrink, use.damp);
}

}  // namespace

double HalfLosses::worst_share_of(const HalfLosses& start) const {
  double worst = start.sum() > 0 ? 0 : INFINITY;
  if (start.first > 0) worst = std::max(worst, first / start.first);
  if (start.second > 0) worst = std::max(worst, second / start.second);
  return std::isfinite(start.sum()) ? worst : INFINITY;
}

HalfLosses losses_of(const ggufmill_covariance_kernels& kernels, ggufmill_loss_call call,
                     std::span<const float> vectors) {
  const auto loss_on = [&](std::span<const float> half) {
    std::array<double, kLevelRows> losses{};
    call.count = half.size() / call.cols;
    call.vectors = half.data();
    call.losses = losses.data();
    kernels.losses(&call);
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  };
  const std::size_t half = vectors.size() / call.cols / 2 * call.cols;
  return {loss_on(vectors.first(half)), loss_on(vectors.subspan(half))};
}

Status make_metric(const ggufmill_covariance_kernels& kernels, const CovarianceSources& sources,
                   const ForEach& for_each, const std::function<bool()>& stopped, Metric& metric) {
  return MetricMaker(kernels, CovarianceOfFile(sources, metric), for_each, stopped, metric).make();
}

Status make_metric(const ggufmill_covariance_kernels& kernels, std::span<const double> elements,
                   const ForEach& for_each, const std::function<bool()>& stopped, Metric& metric) {
  const std::uint64_t columns = metric.use.covariance->columns;
  return MetricMaker(kernels, CovarianceInMemory(elements, columns), for_each, stopped, metric).make();
}

bool Metrics::acquire(std::uint64_t cost, std::span<const MetricUse> uses, std::uint64_t matrix, std::uint64_t ordinal,
                      Used& used) {
  used.clear();
  std::uint64_t missing = 0;
  std::vector<std::string> keys;
  for (const MetricUse& use : uses) {
    std::shared_ptr<Metric>& metric = used.emplace_back();
    std::string& key = keys.emplace_back();
    if (!use.covariance->is_used(matrix)) continue;
    key = key_of(use, matrix % use.covariance->matrices);
    if (const auto known = known_.find(key); known != known_.end()) {
      metric = known->second;
    } else {
      metric = std::make_shared<Metric>();
      metric->use = use;
      metric->matrix = matrix % use.covariance->matrices;
      metric->ordinal = ordinal;
      metric->cost = use.covariance->metric_bytes();
      missing += metric->cost;
    }
  }
  while (!budget_.try_acquire(cost + missing))
    if (!drop_one(used)) return used.clear(), false;
  ++uses_;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    known_.emplace(keys[i], used[i]);
    ++used[i]->users;
    used[i]->last_use = uses_;
  }
  return true;
}

// Drops the metric, of those without users, that was not used for longest. Returns false if there is none.
bool Metrics::drop_one(const Used& kept) {
  auto found = known_.end();
  for (auto each = known_.begin(); each != known_.end(); ++each)
    if (each->second->users == 0 && std::ranges::count(kept, each->second) == 0 &&
        (found == known_.end() || each->second->last_use < found->second->last_use))
      found = each;
  if (found == known_.end()) return false;
  const std::uint64_t cost = found->second->cost;
  known_.erase(found);
  budget_.release(cost);
  return true;
}

void Metrics::release(std::uint64_t cost, const Used& used) {
  for (const auto& metric : used)
    if (metric) --metric->users;
  budget_.release(cost);
}

Metric* Metrics::wait_for(Slab& slab, bool& must_make) noexcept {
  const std::scoped_lock lock(mutex_);
  for (const auto& metric : slab.metrics) {
    if (!metric || metric->state == Metric::State::kReady) continue;
    must_make = metric->state == Metric::State::kNew;
    metric->state = Metric::State::kMaking;
    slab.next = std::exchange(metric->waiting, &slab);
    return metric.get();
  }
  return nullptr;
}

Slab* Metrics::made(Metric& metric) noexcept {
  const std::scoped_lock lock(mutex_);
  metric.state = Metric::State::kReady;
  return std::exchange(metric.waiting, nullptr);
}

void Metrics::failed(const Metric& metric) {
  const Covariance& covariance = *metric.use.covariance;
  const std::string expert = covariance.matrices == 1 ? "" : fmt::format(", expert {}", metric.matrix);
  const std::scoped_lock lock(mutex_);
  if (!metric.has_helped) {
    unhelpful_.insert(quoted_name(covariance.name) + expert);
    return;
  }
  faults_.insert(
      fmt::format("the covariance of the input of {}{} is not positive definite: the levels of its tensors are those "
                  "of the search alone",
                  quoted_name(covariance.name), expert));
}

std::vector<std::string> Metrics::faults() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> faults(faults_.begin(), faults_.end());
  if (!unhelpful_.empty())
    faults.push_back(
        fmt::format("levels chosen with the covariance of {}, for example that of {}, would not be better on the "
                    "held-out vectors: those of their tensors are of the search alone",
                    counted(unhelpful_.size(), "input"), *unhelpful_.begin()));
  return faults;
}

}  // namespace ggufmill
