#include "pipeline/graph/rows_in_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/core/covariance.h"
#include "pipeline/core/encoder.h"
#include "pipeline/core/importance.h"
#include "pipeline/graph/convert.h"
#include "pipeline/graph/metrics.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/threads.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

Status check_columns(const TypeInfo& type, std::uint64_t columns) {
  if (columns % type.block_elements == 0) return ok();
  return usage_error(fmt::format("rows of {} values are not a whole number of blocks of {}", columns, type.name),
                     fmt::format("{} has blocks of {}: the length of a row, which is the last dimension of an array, "
                                 "must be a multiple of that; or choose a type with smaller blocks",
                                 type.name, type.block_elements));
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

// Returns a plan with one step, which makes rows of one type from an expression.
Plan plan_of_rows(std::string name, ExpressionRef expression, const TypeInfo& type) {
  Plan plan;
  Step& step = plan.steps.emplace_back();
  step.name = std::move(name);
  step.expression = std::move(expression);
  step.encodings.emplace_back().type = &type;
  finish_plan(plan);
  plan.limits.memory = std::max(kRowsMemory, plan.least_memory);
  return plan;
}

// Calls `work` for every number below `count` on up to `threads` threads, with the scratch memory that converting tiles
// of a step needs.
template <class Work>
Status for_each_with_scratch(unsigned threads, std::size_t count, const StepLayout& layout, const Work& work) {
  return for_each_on_threads(
      static_cast<unsigned>(std::min<std::size_t>(threads, count)), count,
      [&](std::size_t i, std::vector<std::byte>& scratch) {
        scratch.resize(layout.scratch_bytes());
        work(i, std::span(reinterpret_cast<float*>(scratch.data()), scratch.size() / sizeof(float)));
        return ok();
      });
}

// Rows of a step in the memory of a caller; weights as in RowConversion.
struct RowsOfCaller {
  std::span<const std::byte> values;
  std::span<std::byte> into;
  std::uint64_t rows = 0, columns = 0;
  std::span<const float> weights;
};

// Runs the tile converter on slabs that use the caller's memory for values and encoded bytes. Only F32 rows that do not
// fit into a worker's scratch need memory of their own; they limit the rows of a slab.
class CallersRows {
 public:
  CallersRows(const RowsOfCaller& rows, const BoundStep& step, const Kernels& kernels)
      : rows_(rows), step_(step), kernels_(kernels) {}

  Status convert(unsigned threads, RunState& state) {
    std::uint64_t long_row = 0;
    for (const BufferLayout& buffer : step_.layout->buffers())
      if (buffer.use == BufferLayout::kLongRows) long_row = buffer.row_bytes;
    const std::uint64_t at_once = long_row == 0 ? rows_.rows : std::max<std::uint64_t>(kRowsMemory / long_row, 1);
    for (std::uint64_t row = 0; row < rows_.rows && !state.feeds_no_more(); row += at_once) {
      const std::uint64_t end = std::min(row + at_once, rows_.rows);
      Slab slab;
      slab.ordinal = row / at_once;
      BOOST_OUTCOME_TRY(slab.memory, Buffer::allocate((end - row) * long_row));
      add_parts(slab, row, end, long_row);
      BOOST_OUTCOME_TRY(for_each_with_scratch(threads, slab.tiles, *step_.layout, [&](std::size_t i, auto scratch) {
        const auto tile = static_cast<std::uint32_t>(i);
        if (!state.skips(slab.ordinal))
          state.guard(slab.ordinal, RunState::kTiles + tile,
                      [&] { return convert_tile(slab, tile, scratch, kernels_); });
      }));
    }
    return state.status();
  }

 private:
  // Adds rows [first, end), one part for each set of weights.
  void add_parts(Slab& slab, std::uint64_t first, std::uint64_t end, std::uint64_t long_row) const {
    const std::uint64_t per_weights =
        rows_.weights.empty() ? rows_.rows : rows_.rows / (rows_.weights.size() / rows_.columns);
    for (std::uint64_t row = first, next = 0; row < end; row = next) {
      next = std::min(end, (row / per_weights + 1) * per_weights);
      const auto of_part = [&](auto all, std::uint64_t row_bytes, std::uint64_t begin) {
        return all.subspan((row - begin) * row_bytes, (next - row) * row_bytes);
      };
      SlabPart& part = slab.add_part({0, 0, row, next - row, 0, 0, 0}, step_);
      const std::span<const std::byte> values = of_part(rows_.values, part.values.expression->row_bytes(), 0);
      part.values.is_read = true;
      // Only read: the converter changes values only to swap their byte order or to replace some with 0.
      part.values.bytes = {const_cast<std::byte*>(values.data()), values.size()};
      part.encoded[0] = of_part(rows_.into, step_.layout->encodings()[0].row_bytes, 0);
      part.long_rows = of_part(slab.memory.span(), long_row, first);
      if (rows_.weights.empty()) continue;
      const std::span<const float> weights = rows_.weights.subspan(row / per_weights * rows_.columns, rows_.columns);
      part.importance.push_back(std::make_shared<MatrixWeights>());
      part.importance[0]->values.assign(weights.begin(), weights.end());
    }
  }

  const RowsOfCaller& rows_;
  const BoundStep& step_;
  const Kernels& kernels_;
};

// Checks a conversion, and divides it into rows for CallersRows.
class Conversion {
 public:
  explicit Conversion(const RowConversion& wanted) : wanted_(wanted), from_(*wanted.from), to_(*wanted.to) {}

  Status check(const Kernels& kernels) {
    for (const TypeInfo* type : {&from_, &to_})
      if (type->plain && &from_ != &to_)
        return usage_error(fmt::format("the rows of {} are interleaved in groups of {}", type->name, type->group_rows),
                           fmt::format("convert rows of {}, and write a file of {}", type->plain->name, type->name));
    BOOST_OUTCOME_TRY(check_columns(from_, wanted_.columns));
    BOOST_OUTCOME_TRY(check_columns(to_, wanted_.columns));
    const std::uint64_t from_row = row_bytes(from_, wanted_.columns), to_row = row_bytes(to_, wanted_.columns);
    rows_ = from_row == 0 ? 0 : wanted_.values.size() / from_row;
    if (rows_ * from_row != wanted_.values.size())
      return usage_error(fmt::format("{} bytes are not whole rows of {} values of {}", wanted_.values.size(),
                                     wanted_.columns, from_.name),
                         fmt::format("a row has {} bytes", from_row));
    if (rows_ * to_row != wanted_.into.size())
      return usage_error(fmt::format("{} bytes is the wrong size for {} rows of {} values of {}", wanted_.into.size(),
                                     rows_, wanted_.columns, to_.name),
                         fmt::format("a row has {} bytes", to_row));
    if (&from_ == &to_ || rows_ == 0) return ok();
    if (!from_.is_f32() && !kernels.decode(from_.id)) return kernels.missing(GGUFMILL_DECODE, from_.id);
    if (to_.is_f32()) return ok();
    const KernelChoice* encode = kernels.encode(to_.id);
    if (!encode) return kernels.missing(GGUFMILL_ENCODE, to_.id);
    const std::uint32_t flags = encode->kernel->flags;
    if (wanted_.importance.empty() && flags & GGUFMILL_NEEDS_IMPORTANCE)
      return usage_error(fmt::format("{} needs importance weights", to_.name),
                         "give the weights of the columns, or choose another type");
    BOOST_OUTCOME_TRY(check_importance(wanted_.importance, wanted_.columns, rows_));
    if (flags & (GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE)) weights_ = wanted_.importance;
    return ok();
  }

  // Must be called after check().
  Status run(const Kernels& kernels, const RowsOptions& options) {
    if (&from_ == &to_) {
      std::ranges::copy(wanted_.values, wanted_.into.begin());
      return ok();
    }
    if (rows_ == 0) return ok();
    // Built-in types are decoded block by block, so rows need not be kept together and even a single long row is
    // divided among threads.
    if (!to_.is_f32() || from_.type_class == TypeClass::kForeign)
      return convert({wanted_.values, wanted_.into, rows_, wanted_.columns, weights_}, kernels, options);
    constexpr std::uint64_t kColumns = kTileBytes / sizeof(float);  // blocks of every built-in type fit exactly
    const std::uint64_t rows = rows_ * wanted_.columns / kColumns, rest = rows_ * wanted_.columns % kColumns;
    const std::uint64_t from = rows * row_bytes(from_, kColumns), to = rows * kTileBytes;
    BOOST_OUTCOME_TRY(
        convert({wanted_.values.first(from), wanted_.into.first(to), rows, kColumns, {}}, kernels, options));
    return convert({wanted_.values.subspan(from), wanted_.into.subspan(to), 1, rest, {}}, kernels, options);
  }

 private:
  Status convert(const RowsOfCaller& rows, const Kernels& kernels, const RowsOptions& options) const {
    if (rows.into.empty()) return ok();
    const Shape shape{2, {rows.columns, rows.rows, 1, 1}};
    BOOST_OUTCOME_TRY(auto values, expressions::extent(from_, shape, {nullptr, 0, rows.values.size(), false}));
    Plan plan = plan_of_rows("(in memory)", std::move(values), to_);
    if (!weights_.empty()) {  // stands for weights that are at hand
      auto importance = std::make_shared<Importance>();
      importance->columns = importance->matrices = 1;
      plan.steps[0].encodings[0].importance = std::move(importance);
    }
    const std::vector<StepLayout> layouts = layouts_of(plan);
    BOOST_OUTCOME_TRY(std::vector<BoundStep> steps, bind_kernels(plan, layouts, kernels));
    steps[0].nonfinite = to_.is_f32() ? Nonfinite::kKeep : Nonfinite::kError;
    steps[0].is_in_memory = true;
    EngineOptions run;
    run.stop = options.stop;
    NoLedger ledger;
    RunState state(plan, run, ledger, {});
    return CallersRows(rows, steps[0], kernels).convert(threads_for(options.threads), state);
  }

  const RowConversion& wanted_;
  const TypeInfo &from_, &to_;
  std::uint64_t rows_ = 0;
  std::span<const float> weights_;  // the weights passed to the kernel
};

// Reads rows of a tensor in slabs, each on one thread, and converts them to the memory of a caller.
class TensorRows {
 public:
  TensorRows(const RowsOfTensor& wanted, const Kernels& kernels, const RowsOptions& options)
      : kernels_(kernels),
        into_(wanted.into),
        plan_(plan_of_rows(wanted.tensor->name, values_of(wanted), *wanted.to)),
        layouts_(layouts_of(plan_)),
        begin_(wanted.first * layouts_[0].encodings()[0].row_bytes) {
    plan_.units = {{0, wanted.first, wanted.rows}};
    run_.stop = options.stop;
  }

  Status read(unsigned most_threads) {
    BOOST_OUTCOME_TRY(steps_, bind_kernels(plan_, layouts_, kernels_));
    steps_[0].nonfinite = Nonfinite::kKeep;
    BOOST_OUTCOME_TRY(sources_, RunSources::open(plan_, IoMode::kCached, run_.stop));
    SlabCutter cutter(plan_, layouts_, std::max(kSlabBytes, plan_.least_memory));
    std::vector<SlabRows> slabs;
    std::uint64_t most = kSlabBytes;  // bytes of a slab: those of a transpose may be larger than requested
    while (const std::optional<SlabRows> slab = cutter.next()) {
      slabs.push_back(*slab);
      most = std::max(most, slab->cost);
    }
    const auto within_memory = static_cast<unsigned>(std::clamp<std::uint64_t>(kRowsMemory / most, 1, most_threads));
    NoLedger ledger;
    RunState state(plan_, run_, ledger, {});
    BOOST_OUTCOME_TRY(for_each_with_scratch(within_memory, slabs.size(), layouts_[0], [&](std::size_t i, auto scratch) {
      if (!state.skips(i)) state.guard(i, RunState::kRead, [&] { return read(slabs[i], scratch); });
    }));
    return state.status();
  }

 private:
  // Values that are not copied have separated rows.
  static ExpressionRef values_of(const RowsOfTensor& wanted) {
    const ExpressionRef& values = wanted.tensor->expression;
    return values->type == wanted.to ? values : expressions::plain_rows(values).value();
  }

  // As for a run (Feed): slabs that are no larger can reuse each other's memory.
  static constexpr std::uint64_t kSlabBytes = 1 << 20;

  Status read(const SlabRows& rows, std::span<float> scratch) {
    BOOST_OUTCOME_TRY(const auto slab,
                      make_slab({{rows}, std::max(rows.cost, kSlabBytes)}, 0, steps_, no_weights_, false));
    for (const SlabRead& read : slab->reads) {
      BOOST_OUTCOME_TRY(sources_->of(read).read(read.offset, read.into));
    }
    SlabPart& part = slab->parts[0];
    const std::span<std::byte> into = into_.subspan(part.offset_in_place(0) - begin_, part.encoded_bytes(0).size());
    const bool is_copy = part.encoded[0].empty();
    part.encoded[0] = into;
    for (std::uint32_t tile = 0; tile < slab->tiles; ++tile) {
      BOOST_OUTCOME_TRY(convert_tile(*slab, tile, scratch, kernels_));
    }
    if (is_copy) std::ranges::copy(part.values.bytes, into.begin());
    return ok();
  }

  const Kernels& kernels_;
  const std::span<std::byte> into_;
  Plan plan_;
  const std::vector<StepLayout> layouts_;
  const std::uint64_t begin_;  // offset of the first row in the tensor, as in `into_`
  EngineOptions run_;
  std::vector<BoundStep> steps_;
  std::unique_ptr<RunSources> sources_;
  ImportanceWeights no_weights_;
};

// Checks a choice of levels, and makes it in groups of rows.
class Choice {
 public:
  Choice(const LevelChoice& wanted, const Kernels& kernels, const RowsOptions& options)
      : wanted_(wanted), type_(*wanted.type), kernels_(kernels.covariance()), options_(options) {}

  Status check() {
    if (!has_covariance(type_) || type_.plain)
      return usage_error(fmt::format("rows of {} have no levels that can be chosen with a covariance", type_.name),
                         "these types have: " + types_with(covariance_method()));
    BOOST_OUTCOME_TRY(check_columns(type_, wanted_.columns));
    const std::uint64_t columns = wanted_.columns;
    rows_ = columns == 0 ? 0 : wanted_.values.size() / columns;
    if (rows_ * columns != wanted_.values.size())
      return usage_error(fmt::format("{} values are not whole rows of {}", wanted_.values.size(), columns));
    if (rows_ * row_bytes(type_, columns) != wanted_.rows.size())
      return usage_error(fmt::format("{} bytes is the wrong size for {} rows of {} values of {}", wanted_.rows.size(),
                                     rows_, columns, type_.name),
                         fmt::format("a row has {} bytes", row_bytes(type_, columns)));
    if (columns > kMaxColumns || wanted_.covariance.size() != columns * columns)
      return usage_error(
          fmt::format("a covariance of {} elements does not fit rows of {} values", wanted_.covariance.size(), columns),
          "it has one row and one column for each column of the values");
    for (const double element : wanted_.covariance)
      if (!std::isfinite(element)) return input_error("", "the covariance contains numbers that are not finite");
    for (const double element : wanted_.covariance)
      if (std::abs(element) > kMaxElement)
        return input_error(
            "", fmt::format("the covariance contains {:g}, which is too large", element),
            fmt::format("divide it by a number, so that no element is larger than {:g}: only ratios count",
                        kMaxElement));
    for (std::size_t i = 0; i < wanted_.values.size(); ++i)
      if (!std::isfinite(wanted_.values[i]))
        return input_error("", fmt::format("row {}, column {}: the value is not finite", i / columns, i % columns),
                           "only finite values can be encoded");
    return ok();
  }

  // Must be called after check().
  Status run() {
    if (rows_ == 0) return ok();
    auto covariance = std::make_shared<Covariance>();
    covariance->columns = wanted_.columns;
    covariance->matrices = 1;
    Metric metric;
    metric.cost = covariance->metric_bytes();
    metric.use.covariance = std::move(covariance);
    const unsigned threads = threads_for(options_.threads);
    const auto stopped = [&] { return options_.stop && options_.stop->load(); };
    const auto for_each = [&](std::uint64_t count, const std::function<void(std::uint64_t)>& each) {
      static_cast<void>(for_each_on_threads(static_cast<unsigned>(std::min<std::uint64_t>(threads, count)), count,
                                            [&](std::size_t i, std::vector<std::byte>&) {
                                              each(i);
                                              return ok();
                                            }));
    };
    BOOST_OUTCOME_TRY(make_metric(kernels_, wanted_.covariance, for_each, stopped, metric));
    if (stopped()) return interrupted();
    if (!metric.is_usable)
      return input_error("", "the covariance is not positive definite", "add a small positive number to its diagonal");
    const std::uint64_t groups = (rows_ + kGroup - 1) / kGroup;
    return for_each_on_threads(static_cast<unsigned>(std::min<std::uint64_t>(threads, groups)), groups,
                               [&](std::size_t group, std::vector<std::byte>& memory) -> Status {
                                 if (stopped()) return interrupted();
                                 choose(group, metric, memory);
                                 return ok();
                               });
  }

 private:
  static constexpr std::uint64_t kMaxColumns = std::uint64_t{1} << 24, kGroup = 4 * kLevelRows;
  static constexpr std::size_t kAlignment = 64;
  static constexpr double kMaxElement = 1e30;  // kernels compute products in float32

  void choose(std::uint64_t group, const Metric& metric, std::vector<std::byte>& memory) const {
    const std::uint64_t columns = wanted_.columns, first = group * kGroup, count = std::min(kGroup, rows_ - first);
    const std::size_t bytes = kGroup * columns * kLevelBytesPerColumn;
    memory.resize(bytes + kAlignment);
    void* aligned = memory.data();
    std::size_t room = memory.size();
    std::align(kAlignment, bytes, aligned, room);
    const ggufmill_level_call call{type_.id,
                                   wanted_.sweeps,
                                   count,
                                   columns,
                                   wanted_.values.data() + first * columns,
                                   wanted_.rows.data() + first * row_bytes(type_, columns),
                                   &metric.values,
                                   aligned};
    kernels_.choose_levels(&call);
  }

  const LevelChoice& wanted_;
  const TypeInfo& type_;
  const ggufmill_covariance_kernels& kernels_;
  const RowsOptions& options_;
  std::uint64_t rows_ = 0;
};

}  // namespace

Status choose_levels(const LevelChoice& choice, const Kernels& kernels, const RowsOptions& options) try {
  Choice work(choice, kernels, options);
  BOOST_OUTCOME_TRY(work.check());
  return work.run();
} catch (...) {
  return error_of_exception();
}

Status convert_rows(const RowConversion& conversion, const Kernels& kernels, const RowsOptions& options) try {
  Conversion work(conversion);
  BOOST_OUTCOME_TRY(work.check(kernels));
  return work.run(kernels, options);
} catch (...) {
  return error_of_exception();
}

Status read_rows(const RowsOfTensor& wanted, const Kernels& kernels, const RowsOptions& options) try {
  const Expression& expression = *wanted.tensor->expression;
  const std::string& name = wanted.tensor->name;
  const TypeInfo &own = *expression.type, &to = *wanted.to;
  const std::uint64_t columns = expression.shape.columns(), to_row = row_bytes(to, columns);
  if (wanted.first > expression.shape.rows() || wanted.rows > expression.shape.rows() - wanted.first)
    return usage_error(fmt::format("tensor '{}' has {} rows: cannot read {} from row {}", name, expression.shape.rows(),
                                   wanted.rows, wanted.first));
  if (&to != &own && !to.is_f32())
    return usage_error(fmt::format("tensor '{}' can be read as {} or F32, not as {}", name, own.name, to.name));
  if (wanted.into.size() != wanted.rows * to_row)
    return usage_error(fmt::format("{} bytes is the wrong size for {} rows of {} values of {}", wanted.into.size(),
                                   wanted.rows, columns, to.name));
  if (wanted.into.empty()) return ok();
  return TensorRows(wanted, kernels, options).read(threads_for(options.threads));
} catch (...) {
  return error_of_exception();
}

}  // namespace ggufmill
