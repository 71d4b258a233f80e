#include "pipeline/graph/encode_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "pipeline/graph/assemble.h"

namespace ggufmill {
namespace {

Status encode_plainly(const BoundEncoding& encoding, KernelCall call) {
  const Encoder& encoder = encoding.encoding->encoder;
  if (encoder.searches()) {
    call.effort = encoder.effort;
    call.weights = static_cast<std::uint32_t>(encoder.weights.value());
  }
  return run_kernel(encoding.encode, call, *encoding.name);
}

// Rows of a call, those that are recognised encoded by the lattice kernel.
class LatticeRows {
 public:
  LatticeRows(const BoundEncoding& encoding, const KernelCall& call, const float* weights)
      : encoding_(encoding), type_(encoding.rows_type()), call_(call), weights_(weights) {}

  // Encodes rows that are not recognised in runs.
  Status encode() const {
    std::uint64_t first = 0;  // of the run
    for (std::uint64_t row = 0; row < call_.rows; ++row) {
      const std::int32_t found = recognise(row);
      if (found == GGUFMILL_LATTICE_NONE) continue;
      BOOST_OUTCOME_TRY(encode_others(first, row));
      first = row + 1;
      if (found != GGUFMILL_LATTICE_EXACT) {
        BOOST_OUTCOME_TRY(encode_others(row, row + 1));
      }
      BOOST_OUTCOME_TRY(replace(row, found));
    }
    return encode_others(first, call_.rows);
  }

 private:
  static constexpr std::size_t kAtOnce = 1024;           // whole blocks of every type with a lattice
  static constexpr std::size_t kMaxBytes = 2 * kAtOnce;  // of as many values

  const float* values(std::uint64_t row) const { return static_cast<const float*>(call_.src) + row * call_.cols; }
  std::byte* bytes(std::uint64_t row) const {
    return static_cast<std::byte*>(call_.dst) + row * row_bytes(type_, call_.cols);
  }

  std::int32_t recognise(std::uint64_t row) const { return encoding_.lattice->run(values(row), call_.cols, nullptr); }

  // Writes a recognised row if it is exact, or better than what is encoded.
  Status replace(std::uint64_t row, std::int32_t found) const {
    bool is_better = found == GGUFMILL_LATTICE_EXACT;
    if (!is_better) {
      BOOST_OUTCOME_TRY(is_better, beats_plain(row));
    }
    if (is_better) encoding_.lattice->run(values(row), call_.cols, bytes(row));
    return ok();
  }

  Status encode_others(std::uint64_t first, std::uint64_t end) const {
    if (first == end) return ok();
    return encode_plainly(encoding_, {values(first), bytes(first), end - first, call_.cols, call_.importance});
  }

  // Compares the weighted errors of a row that is encoded plainly and of what the lattice kernel makes of it.
  Result<bool> beats_plain(std::uint64_t row) const {
    double plain = 0, lattice = 0;
    for (std::uint64_t at = 0; at < call_.cols; at += kAtOnce) {
      const std::uint64_t count = std::min<std::uint64_t>(kAtOnce, call_.cols - at);
      std::array<std::byte, kMaxBytes> blocks;
      encoding_.lattice->run(values(row) + at, count, blocks.data());
      BOOST_OUTCOME_TRY(add_error(row, at, count, bytes(row) + at / type_.block_elements * type_.block_bytes, plain));
      BOOST_OUTCOME_TRY(add_error(row, at, count, blocks.data(), lattice));
    }
    return lattice < plain;
  }

  Status add_error(std::uint64_t row, std::uint64_t at, std::uint64_t count, const std::byte* blocks,
                   double& error) const {
    std::array<float, kAtOnce> y;
    BOOST_OUTCOME_TRY(run_kernel(encoding_.decode, {blocks, y.data(), 1, count, nullptr}, *encoding_.name));
    for (std::uint64_t i = 0; i < count; ++i) {
      const double off = double{values(row)[at + i]} - double{y[i]};
      error += (weights_ ? double{weights_[at + i]} : 1.0) * off * off;
    }
    return ok();
  }

  const BoundEncoding& encoding_;
  const TypeInfo& type_;
  const KernelCall& call_;
  const float* weights_;
};

}  // namespace

Status encode_rows(const BoundEncoding& encoding, const KernelCall& call, const float* weights) {
  return encoding.lattice ? LatticeRows(encoding, call, weights).encode() : encode_plainly(encoding, call);
}

}  // namespace ggufmill
