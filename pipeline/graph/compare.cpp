#include "pipeline/graph/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>

#include "pipeline/graph/compare_piece.h"
#include "pipeline/graph/on_threads.h"
#include "pipeline/graph/run_files.h"
#include "pipeline/graph/run_state.h"
#include "pipeline/io/machine.h"

namespace ggufmill {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostPieceBytes = 4 << 20;
constexpr std::chrono::milliseconds kReportInterval{50};

bool is_f32(const TypeInfo& type) { return type.id == type_named("F32").id; }

Result<InputFiles> open_files(const Model& model) {
  InputFiles files;
  for (const SourceFile& file : model.files) {
    BOOST_OUTCOME_TRY(files.emplace_back(), InputFile::open(file.path));
  }
  return files;
}

ComparedSide side_of(const Tensor& tensor, const InputFiles& files, const Kernels& kernels) {
  const TypeInfo& type = *tensor.source.type;
  const KernelChoice* decode = is_f32(type) ? nullptr : kernels.decode(type.id);
  return {&tensor, &files, decode ? *decode : KernelChoice{},
          tensor.shape.columns() / type.block_elements * type.block_bytes};
}

std::uint64_t bytes_of(const ComparedPiece& piece) {
  return piece.rows * (piece.work->a.row_bytes + piece.work->b.row_bytes);
}

// Claims pieces in order, so that reads follow the files whatever the number of threads.
class Comparison {
 public:
  Comparison(const std::vector<TensorPair>& pairs, const InputFiles& a, const InputFiles& b, const Kernels& kernels,
             const CompareOptions& options)
      : options_(options) {
    for (const TensorPair& pair : pairs) {
      ComparedWork& work = work_.emplace_back();
      work.a = side_of(*pair.a, a, kernels);
      work.b = side_of(*pair.b, b, kernels);
      work.decodable = is_decodable(*pair.a->source.type, kernels) && is_decodable(*pair.b->source.type, kernels);
      work.columns = pair.a->shape.columns();
      work.rows = work.columns == 0 ? 0 : pair.a->shape.rows();
      work.measure = &measures_.emplace_back(work.rows);
      work.differs = &differs_.emplace_back(pair.a->source.type != pair.b->source.type);
    }
  }

  Result<CompareResult> run() {
    BOOST_OUTCOME_TRY(choose_threads());
    const std::uint64_t share = std::min(kMostPieceBytes, options_.memory / threads_);
    for (const ComparedWork& work : work_) cut(work, std::max(share, work.cost(1)));
    on_threads(threads_, [this] { work(); });
    if (options_.stop && *options_.stop) return interrupted(0, 0);
    if (error_) return *error_;
    if (options_.progress) options_.progress(bytes_read_, bytes_read_);
    return result();
  }

 private:
  // As many as are wanted and as the budget has room for.
  Status choose_threads() {
    std::uint64_t least = 1;
    for (const ComparedWork& work : work_) least = std::max(least, work.rows == 0 ? 0 : work.cost(1));
    if (least > options_.memory)
      return usage_error(fmt::format("a memory limit of {} bytes is too small for this comparison", options_.memory),
                         fmt::format("its longest row needs {} bytes: --memory {} or more", least, least));
    threads_ = static_cast<unsigned>(std::min<std::uint64_t>(threads_for(options_.threads), options_.memory / least));
    return ok();
  }

  // Pieces of at most `most` bytes; with importance, none crosses a matrix.
  void cut(const ComparedWork& work, std::uint64_t most) {
    if (work.rows == 0) return;
    const Tensor& a = *work.a.tensor;
    const std::uint64_t matrix = a.importance ? a.shape.dims[1] : work.rows;
    const std::uint64_t step =
        std::max<std::uint64_t>((most - work.cost(0)) / (work.a.row_bytes + work.b.row_bytes), 1);
    for (std::uint64_t row = 0; row < work.rows;) {
      const std::uint64_t rows = std::min({step, matrix - row % matrix, work.rows - row});
      pieces_.push_back({&work, row, rows});
      bytes_read_ += bytes_of(pieces_.back());
      most_cost_ = std::max(most_cost_, work.cost(rows));
      row += rows;
    }
  }

  void work() {
    const Buffer memory(most_cost_);
    for (std::size_t piece; (piece = next_++) < pieces_.size() && piece < failed_;) {
      if (options_.stop && *options_.stop) return;
      try {
        if (const Status status = compare_piece(pieces_[piece], memory.span()); !status) fail(piece, status.error());
        report(pieces_[piece]);
      } catch (const std::exception& error) {
        fail(piece, unexpected(error));
      }
    }
  }

  void report(const ComparedPiece& piece) {
    if (!options_.progress) return;
    const std::lock_guard lock(progress_mutex_);
    done_ += bytes_of(piece);
    const auto now = Clock::now();
    if (now - reported_ < kReportInterval) return;
    reported_ = now;
    options_.progress(done_, bytes_read_);
  }

  void fail(std::size_t piece, Error error) {
    const std::lock_guard lock(mutex_);
    if (piece >= failed_) return;
    failed_ = piece;
    error_ = std::move(error);
  }

  CompareResult result() const {
    CompareResult result;
    for (std::size_t i = 0; i < work_.size(); ++i) result.pairs.push_back({!differs_[i], measures_[i].result().error});
    result.bytes_read = bytes_read_;
    result.peak_memory = most_cost_ * threads_;
    result.threads = threads_;
    return result;
  }

  const CompareOptions& options_;
  std::deque<ComparedWork> work_;  // deques: pieces point to elements
  std::deque<TargetMeasure> measures_;
  std::deque<std::atomic<bool>> differs_;
  std::vector<ComparedPiece> pieces_;
  std::uint64_t bytes_read_ = 0, most_cost_ = 0;
  unsigned threads_ = 1;
  std::atomic<std::size_t> next_{0}, failed_{std::numeric_limits<std::size_t>::max()};
  std::mutex progress_mutex_;
  std::uint64_t done_ = 0;                     // guarded by progress_mutex_
  Clock::time_point reported_ = Clock::now();  // likewise
  std::mutex mutex_;
  std::optional<Error> error_;  // of piece failed_; guarded by mutex_
};

}  // namespace

bool is_decodable(const TypeInfo& type, const Kernels& kernels) { return is_f32(type) || kernels.decode(type.id); }

Result<CompareResult> compare_tensors(const std::vector<TensorPair>& pairs, const Model& a, const Model& b,
                                      const Kernels& kernels, const CompareOptions& options) try {
  const auto start = Clock::now();
  BOOST_OUTCOME_TRY(const InputFiles files_a, open_files(a));
  BOOST_OUTCOME_TRY(const InputFiles files_b, open_files(b));
  BOOST_OUTCOME_TRY(CompareResult result, Comparison(pairs, files_a, files_b, kernels, options).run());
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
} catch (const std::exception& error) {
  return unexpected(error);
}

}  // namespace ggufmill
