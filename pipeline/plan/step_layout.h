#pragma once
// The layout of a step: the kinds of work it has, the buffers that the work needs, and the memory that these occupy.
// Planning reads its cost, the engine binds kernels to it, and slabs are allocated by it. A pure function of the plan.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/lifetime.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// F32 bytes that one worker decodes at a time; together with the source and the encoded bytes they fit into a core's L2
// cache. Every worker has scratch memory of this size outside the budget, and twice that if errors are measured. Rows
// whose F32 form is longer get their own memory, which is included in their slab's cost.
inline constexpr std::uint64_t kTileBytes = 256 << 10;

// Number of rows whose levels are chosen together, if there are as many: kernels have them in the lanes of vectors.
inline constexpr std::uint64_t kRowsChosenTogether = 64;

// A buffer occupies whole pages. This is the smallest page size in use, because the cost must not depend on the
// machine.
inline constexpr std::uint64_t kPageBytes = 4096;
std::uint64_t whole_pages(std::uint64_t bytes);  // saturates near 2^64

// Bookkeeping memory per range, if many ranges are read.
inline constexpr std::uint64_t kRangeCost = 64;

// Returns true if the limits request direct I/O. Its buffers have the same offset in a memory page as in a disk block,
// so each may need one more page.
bool is_direct(const Plan& plan);

// The work that makes an encoding from the values of its step.
enum class Work : std::uint8_t {
  kCopy,    // unchanged, in the host's byte order
  kSwap,    // the same in the opposite byte order
  kDecode,  // as F32
  kEncode,  // decoded if they are not F32, then encoded
};
Work work_of(const Step& step, const Encoding& encoding);
// Returns the number of rows that are made together: those of a group, if rows are interleaved, or if it is decided for
// some rows at a time whether a covariance is used.
// Units, slabs and tiles consist of such groups.
std::uint64_t group_rows_of(const Step& step);
// Returns true for work that needs the values as F32.
inline bool converts(Work work) { return work == Work::kDecode || work == Work::kEncode; }

// One encoding of a step.
struct EncodingLayout {
  Work work = Work::kCopy;
  bool is_measured = false;  // its values are decoded again to measure the error
  std::uint64_t row_bytes = 0;
};

// A buffer that a slab of the step has, in bytes per row.
struct BufferLayout {
  enum Use : std::uint8_t {
    kValues,        // the values of the expression
    kCompared,      // the values that they are compared with
    kLongRows,      // values as F32, if a row does not fit into a worker's scratch
    kMeasuredRows,  // a second set of F32 values to measure errors, likewise
    kEncoded,       // an encoding that is not a copy
    kPlainRows,     // the rows of an encoding before they are interleaved
    kChosenRows,    // values, levels and errors while levels are chosen with a covariance
  };
  Use use = kValues;
  std::size_t encoding = 0;  // kEncoded, kPlainRows: its index
  std::uint64_t row_bytes = 0;
  std::uint64_t group_rows = 1;  // memory is for a multiple of this number of rows

  // Returns the bytes for `rows` rows; saturates near 2^64.
  std::uint64_t bytes(std::uint64_t rows) const;
};

// The metric in which levels of a matrix are chosen: its covariance, as one encoder uses it. Several encodings, steps
// and slabs share it.
struct MetricUse {
  std::shared_ptr<const Covariance> covariance;
  double shrink = 0, damp = 0;
};

// All sums that exceed 64 bits saturate. The step must outlive its layout.
class StepLayout {
 public:
  StepLayout(const Plan& plan, GGUFMILL_OUTLIVES_RESULT const Step& step);

  const Step& step() const { return *step_; }
  // True if nothing is computed: bytes are only read and written, and slabs may divide rows.
  bool copies_only() const { return copies_only_; }
  // True if encodings or a comparison need the values as F32.
  bool converts() const { return converts_; }
  // Index of the encoding whose buffer receives the decoded values; none if they are F32 already or no encoding is.
  std::optional<std::size_t> f32_encoding() const { return f32_encoding_; }
  bool has_importance() const { return has_importance_; }
  // True if slabs must not cross matrix boundaries: for assembled expressions, and with importance.
  bool stays_in_matrix() const { return stays_in_matrix_; }
  // The distinct metrics that encodings use, and the bytes of those of one matrix, which are not part of the cost of
  // slabs. If there are any, rows are best converted in multiples of kRowsChosenTogether.
  std::span<const MetricUse> metrics() const { return metrics_; }
  std::uint64_t metric_bytes() const { return metric_bytes_; }
  // Returns the index of an encoding's metric; none if it has none.
  std::optional<std::size_t> metric_of(const Encoding& encoding) const;
  // One per encoding of the step.
  std::span<const EncodingLayout> encodings() const { return encodings_; }
  std::span<const BufferLayout> buffers() const { return buffers_; }

  std::uint64_t group_rows() const { return group_rows_; }
  // Number of rows that are converted at a time, a multiple of group_rows(); if values are only checked, they have as
  // many bytes.
  std::uint64_t tile_rows() const;
  // Bytes of scratch memory that a worker needs to convert a tile.
  std::uint64_t scratch_bytes() const;

  // The cost of rows: all buffers, the bytes read if the values have to be assembled, and importance weights.
  std::uint64_t of_rows(std::uint64_t rows) const;
  std::uint64_t of_bytes(std::uint64_t bytes) const;  // of a copy
  // Returns the number of rows whose cost is at most `limit`, a multiple of group_rows() and at least that.
  std::uint64_t rows_within(std::uint64_t limit) const;
  // Returns the same for a slab with cost `usual`. If that would read many pieces smaller than a page, as for a
  // transpose, the limit is `most` instead: more rows make larger pieces.
  std::uint64_t rows_of_slab(std::uint64_t usual, std::uint64_t most) const;
  // Returns the number of which the rows of a slab should be a multiple, if it has `rows` rows at most.
  std::uint64_t even_rows(std::uint64_t rows) const;
  // Returns the bytes of whole blocks that cost at most `limit` as a copy; at least one block.
  std::uint64_t bytes_within(std::uint64_t limit) const;
  // Returns the cost of the smallest piece: one row or group of rows, or one block of a copy. Where levels are chosen,
  // it has the rows that share the memory for that.
  std::uint64_t least() const;

 private:
  void add_encodings(const Plan& plan);
  void add_buffers();
  void add_values(BufferLayout::Use use, const Expression& values);
  void add_fixed_cost(const Plan& plan);
  void add_metrics();
  std::uint64_t tile_group() const;
  std::uint64_t least_rows() const;
  std::uint64_t importance_cost(const Importance& importance) const;

  const Step* step_;
  std::uint64_t group_rows_ = 1;
  bool copies_only_ = false, converts_ = false, measures_ = false, has_importance_ = false, stays_in_matrix_ = false;
  std::optional<std::size_t> f32_encoding_;
  std::vector<EncodingLayout> encodings_;
  std::vector<BufferLayout> buffers_;
  std::vector<MetricUse> metrics_;
  std::uint64_t metric_bytes_ = 0;
  std::vector<const Expression*> assembled_;  // those of the values and the compared values that are not one extent
  std::uint64_t fixed_ = 0;                   // cost of importance weights and of the page offsets of direct I/O
};

// Returns the layouts of all steps, in order. The plan must outlive them.
std::vector<StepLayout> layouts_of(GGUFMILL_OUTLIVES_RESULT const Plan& plan);

// Returns the cost of the costliest row or copied block; and the smallest memory limit with which every slab can be
// made, which also has room for the metrics of the slab.
std::uint64_t least_slab(std::span<const StepLayout> layouts);
std::uint64_t least_budget(std::span<const StepLayout> layouts);
// For messages: returns what takes the memory of least_budget() and how to need less of it, as help; empty if it is
// just the longest row.
std::string why_least_budget(std::span<const StepLayout> layouts);

}  // namespace ggufmill
