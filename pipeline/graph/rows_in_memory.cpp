#include "pipeline/graph/rows_in_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "pipeline/graph/assemble.h"
#include "pipeline/graph/bind.h"
#include "pipeline/graph/finite.h"
#include "pipeline/io/byte_source.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/threads.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

// Calls `work` for every number below `count`, on up to `threads` threads. Returns the error with the lowest number,
// whatever the number of threads.
Status for_each_piece(std::uint64_t count, unsigned threads, const std::atomic<bool>* stop,
                      const std::function<Status(std::uint64_t piece)>& work) {
  std::atomic<std::uint64_t> next{0}, failed{std::numeric_limits<std::uint64_t>::max()};
  std::mutex mutex;
  Status status = ok();  // guarded by `mutex`
  const auto stopped = [&] { return stop && *stop; };
  const auto take_pieces = [&] {
    for (std::uint64_t piece = next++; piece < count && piece < failed && !stopped(); piece = next++) {
      const Status done = work(piece);
      const std::scoped_lock lock(mutex);
      if (done || piece > failed) continue;
      failed = piece;
      status = done.error();
    }
  };
  try {
    on_threads(static_cast<unsigned>(std::clamp<std::uint64_t>(count, 1, threads_for(threads))), take_pieces);
  } catch (...) {
    return error_of_exception();
  }
  if (stopped()) return interrupted();
  return status;
}

Status check_columns(const TypeInfo& type, std::uint64_t columns) {
  if (columns % type.block_elements == 0) return ok();
  return usage_error(fmt::format("rows of {} values are not a whole number of blocks of {}", columns, type.name),
                     fmt::format("{} has blocks of {}: the length of a row, which is the last dimension of an array, "
                                 "must be a multiple of that; or choose a type with smaller blocks",
                                 type.name, type.block_elements));
}

std::uint64_t row_bytes(const TypeInfo& type, std::uint64_t columns) {
  return columns / type.block_elements * type.block_bytes;
}

Status check_importance(std::span<const float> importance, std::uint64_t columns, std::uint64_t rows) {
  if (importance.empty()) return ok();
  const std::uint64_t parts = importance.size() / columns;
  if (importance.size() % columns != 0 || rows % parts != 0)
    return usage_error(
        fmt::format("{} importance weights do not fit {} rows of {} values", importance.size(), rows, columns),
        "give one weight for each column, either for all rows or for each matrix");
  for (std::size_t i = 0; i < importance.size(); ++i)
    if (!std::isfinite(importance[i]) || importance[i] < 0)
      return usage_error(fmt::format("importance weight {} is {}", i, importance[i]),
                         "weights must be finite and not negative");
  return ok();
}

class Conversion {
 public:
  Conversion(const RowConversion& what, const Kernels& kernels) : what_(what), from_(*what.from), to_(*what.to) {
    decode_ = kernels.decode(from_.id);
    encode_ = kernels.encode(to_.id);
  }

  Status check(const Kernels& kernels) {
    BOOST_OUTCOME_TRY(check_columns(from_, what_.columns));
    BOOST_OUTCOME_TRY(check_columns(to_, what_.columns));
    const std::uint64_t from_row = row_bytes(from_, what_.columns), to_row = row_bytes(to_, what_.columns);
    rows_ = from_row == 0 ? 0 : what_.values.size() / from_row;
    if (rows_ * from_row != what_.values.size())
      return usage_error(
          fmt::format("{} bytes are not whole rows of {} values of {}", what_.values.size(), what_.columns, from_.name),
          fmt::format("a row has {} bytes", from_row));
    if (rows_ * to_row != what_.into.size())
      return usage_error(fmt::format("{} bytes is the wrong size for {} rows of {} values of {}", what_.into.size(),
                                     rows_, what_.columns, to_.name),
                         fmt::format("a row has {} bytes", to_row));
    if (is_copy() || rows_ == 0) return ok();
    if (!from_.is_f32() && !decode_) return kernels.missing(GGUFMILL_DECODE, from_.id);
    if (to_.is_f32()) return ok();
    if (!encode_) return kernels.missing(GGUFMILL_ENCODE, to_.id);
    const std::uint32_t flags = encode_->kernel->flags;
    if (what_.importance.empty() && flags & GGUFMILL_NEEDS_IMPORTANCE)
      return usage_error(fmt::format("{} needs importance weights", to_.name),
                         "give the weights of the columns, or choose another type");
    BOOST_OUTCOME_TRY(check_importance(what_.importance, what_.columns, rows_));
    if (flags & (GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE)) weights_ = what_.importance;
    return ok();
  }

  // Must be called after check().
  Status run(const RowsOptions& options) const {
    if (is_copy()) {
      std::ranges::copy(what_.values, what_.into.begin());
      return ok();
    }
    if (rows_ == 0) return ok();
    if (is_by_blocks()) return run_by_blocks(options);
    const std::uint64_t parts = std::max<std::uint64_t>(weights_.size() / what_.columns, 1), part_rows = rows_ / parts;
    const std::uint64_t tile = std::max<std::uint64_t>(kTileBytes / sizeof(float) / what_.columns, 1);
    const std::uint64_t tiles = (part_rows + tile - 1) / tile;
    const auto work = [&](std::uint64_t piece) {
      const std::uint64_t part = piece / tiles, first = piece % tiles * tile;
      return run_rows(part * part_rows + first, std::min(tile, part_rows - first), part);
    };
    return for_each_piece(parts * tiles, options.threads, options.stop, work);
  }

 private:
  bool is_copy() const { return what_.from == what_.to; }
  // Built-in types are decoded block by block, so rows need not be kept together and even a single long row is split
  // among threads.
  bool is_by_blocks() const { return to_.is_f32() && from_.type_class != TypeClass::kForeign; }

  Status run_by_blocks(const RowsOptions& options) const {
    const std::uint64_t all = what_.values.size() / from_.block_bytes;
    const std::uint64_t tile = std::max<std::uint64_t>(kTileBytes / sizeof(float) / from_.block_elements, 1);
    const auto work = [&](std::uint64_t piece) {
      const std::uint64_t first = piece * tile, blocks = std::min(tile, all - first);
      return run_kernel(
          *decode_,
          {what_.values.data() + first * from_.block_bytes,
           what_.into.data() + first * from_.block_elements * sizeof(float), 1, blocks * from_.block_elements, nullptr},
          name_);
    };
    return for_each_piece((all + tile - 1) / tile, options.threads, options.stop, work);
  }

  Status run_rows(std::uint64_t first, std::uint64_t rows, std::uint64_t part) const {
    const std::uint64_t columns = what_.columns;
    const std::byte* const values = what_.values.data() + first * row_bytes(from_, columns);
    std::byte* const into = what_.into.data() + first * row_bytes(to_, columns);
    if (to_.is_f32()) return run_kernel(*decode_, {values, into, rows, columns, nullptr}, name_);
    std::vector<float> decoded;
    std::span<const float> numbers(reinterpret_cast<const float*>(values), from_.is_f32() ? rows * columns : 0);
    if (!from_.is_f32()) {
      decoded.resize(rows * columns);
      BOOST_OUTCOME_TRY(run_kernel(*decode_, {values, decoded.data(), rows, columns, nullptr}, name_));
      numbers = decoded;
    }
    if (const std::size_t bad = first_not_finite(numbers); bad != numbers.size())
      return wrong_value(first, bad, std::isnan(numbers[bad]) ? "NaN" : "infinity",
                         fmt::format("{} can hold only finite numbers", to_.name));
    const float* const weights = weights_.empty() ? nullptr : weights_.data() + part * columns;
    if (Status made = run_kernel(*encode_, {numbers.data(), into, rows, columns, weights}, name_); !made) {
      Error error = made.error();
      if (error.code != ExitCode::kBadInput) return error;
      error.what = fmt::format("rows {} to {}: values are too large for {}", first, first + rows - 1, to_.name);
      error.detail.clear();
      return error;
    }
    const std::size_t blocks = rows * columns / to_.block_elements, bad = first_bad_block(to_, into, blocks);
    if (bad == blocks) return ok();
    return wrong_value(first, bad * to_.block_elements, fmt::format("a value is too large for {}", to_.name),
                       "choose a type with a greater range, such as BF16 or F32");
  }

  // Returns the error for value `index`, counted from row `first`.
  Error wrong_value(std::uint64_t first, std::uint64_t index, const std::string& what, std::string help) const {
    return {ExitCode::kBadInput, "",
            fmt::format("row {}, column {}: {}", first + index / what_.columns, index % what_.columns, what), "",
            std::move(help)};
  }

  const RowConversion& what_;
  const TypeInfo &from_, &to_;
  const KernelChoice* decode_;
  const KernelChoice* encode_;
  const std::string name_ = "(in memory)";
  std::uint64_t rows_ = 0;
  std::span<const float> weights_;  // the weights passed to the kernel
};

// Opens all sources that an expression reads.
class OpenSources {
 public:
  Status open(const Expression& expression) {
    std::vector<SourceRef> sources;
    add_sources(expression, sources);
    for (const SourceRef& source : sources) {
      BOOST_OUTCOME_TRY(sources_[source.get()], ByteSource::open(*source, IoMode::kCached));
    }
    return ok();
  }

  // Reads a box of the expression, packed.
  Status read(const Expression& expression, const Box& box, const Kernels& kernels, const std::string& tensor,
              std::span<std::byte> into) const {
    ReadRanges read(ranges_of(expression, box));
    std::vector<std::byte> memory(read.bytes());
    read.set_memory(memory);
    for (std::size_t i = 0; i < read.ranges().size(); ++i) {
      const ByteRange& range = read.ranges()[i];
      BOOST_OUTCOME_TRY(sources_.at(range.source)->read(range.offset, read.memory(i)));
    }
    return assemble(expression, box, read, kernels, tensor, into);
  }

 private:
  std::map<const SourceFile*, std::shared_ptr<const ByteSource>> sources_;
};

}  // namespace

Status convert_rows(const RowConversion& conversion, const Kernels& kernels, const RowsOptions& options) {
  Conversion work(conversion, kernels);
  BOOST_OUTCOME_TRY(work.check(kernels));
  return work.run(options);
}

Status read_rows(const RowsOfTensor& wanted, const Kernels& kernels, const RowsOptions& options) {
  const Expression& expression = *wanted.tensor->expression;
  const std::string& name = wanted.tensor->name;
  const TypeInfo &own = *expression.type, &to = *wanted.to;
  const std::uint64_t columns = expression.shape.columns(), in_matrix = expression.shape.dims[1];
  const std::uint64_t to_row = row_bytes(to, columns);
  if (wanted.first > expression.shape.rows() || wanted.rows > expression.shape.rows() - wanted.first)
    return usage_error(fmt::format("tensor '{}' has {} rows: cannot read {} from row {}", name, expression.shape.rows(),
                                   wanted.rows, wanted.first));
  if (&to != &own && !to.is_f32())
    return usage_error(fmt::format("tensor '{}' can be read as {} or F32, not as {}", name, own.name, to.name));
  if (wanted.into.size() != wanted.rows * to_row)
    return usage_error(fmt::format("{} bytes is the wrong size for {} rows of {} values of {}", wanted.into.size(),
                                   wanted.rows, columns, to.name));
  if (wanted.into.empty()) return ok();
  BOOST_OUTCOME_TRY(check_casts(expression, name, kernels));
  OpenSources sources;
  BOOST_OUTCOME_TRY(sources.open(expression));
  // Pieces of about 1 MiB that do not cross matrix boundaries.
  const std::uint64_t piece_rows = std::max<std::uint64_t>(4 * kTileBytes / sizeof(float) / columns, 1);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  for (std::uint64_t row = wanted.first, end = wanted.first + wanted.rows; row < end; row += pieces.back().second)
    pieces.emplace_back(row, std::min({piece_rows, end - row, in_matrix - row % in_matrix}));
  const auto read = [&](std::uint64_t i) -> Status {
    const auto [row, rows] = pieces[i];
    const Box box = box_of_rows(expression.shape, row, rows);
    const auto into = wanted.into.subspan((row - wanted.first) * to_row, rows * to_row);
    if (&own == &to) return sources.read(expression, box, kernels, name, into);
    std::vector<std::byte> values(rows * expression.row_bytes());
    BOOST_OUTCOME_TRY(sources.read(expression, box, kernels, name, values));
    const RowConversion conversion{&own, values, &to, into, columns};
    Conversion work(conversion, kernels);
    BOOST_OUTCOME_TRY(work.check(kernels));
    return work.run({1, options.stop});
  };
  return for_each_piece(pieces.size(), options.threads, options.stop, read);
}

}  // namespace ggufmill
