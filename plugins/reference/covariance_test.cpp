// Points of code books that are chosen with a covariance: those of a plain loop, on every instruction set.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_covariance.h"
#include "plugins/reference/iq2_formats.h"
#include "plugins/reference/iq3_formats.h"
#include "plugins/reference/points.h"
#include "plugins/reference/points_of_fp4.h"
#include "plugins/reference/reference.h"
#include "tests/support/catch.h"

extern "C" const ggufmill_covariance_table ggufmill_reference_covariances;

namespace ggufmill::reference {
namespace {

constexpr std::uint64_t kColumns = 256, kBlock = GGUFMILL_METRIC_TILE;  // columns of a block of the metric: one tile

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

float even(std::mt19937& random) { return static_cast<float>(double(random()) / 4294967296.0 - 0.5); }

// The covariance of vectors whose numbers depend on those before them, and its factor, as tiles.
struct RandomMetric {
  explicit RandomMetric(unsigned seed) : inverse_a(kColumns), inverse_h(kColumns) {
    std::mt19937 random(seed);
    for (std::uint64_t first = 0; first < kColumns; first += kBlock) {
      std::vector<double> h(kBlock * kBlock);
      for (int token = 0; token < 200; ++token) {
        double x[kBlock], last = 0;
        for (double& number : x) number = last = 0.7 * last + double{even(random)};
        for (std::uint64_t i = 0; i < kBlock; ++i)
          for (std::uint64_t k = 0; k < kBlock; ++k) h[i * kBlock + k] += x[i] * x[k];
      }
      const std::vector<double> a = factor_of(h);
      for (const std::vector<double>& of : {a, h})
        for (std::uint64_t k = 0; k < kBlock; ++k)
          for (std::uint64_t i = 0; i < kBlock; ++i) tiles.push_back(static_cast<float>(of[i * kBlock + k]));
      for (std::uint64_t i = 0; i < kBlock; ++i) {
        inverse_a[first + i] = static_cast<float>(1 / a[i * kBlock + i]);
        inverse_h[first + i] = static_cast<float>(1 / h[i * kBlock + i]);
      }
    }
  }

  static std::vector<double> factor_of(std::vector<double> a) {
    for (std::uint64_t k = kBlock; k-- > 0;) {
      const double root = std::sqrt(a[k * kBlock + k]);
      for (std::uint64_t i = 0; i < kBlock; ++i)
        a[i * kBlock + k] = i < k ? a[i * kBlock + k] / root : i == k ? root : 0;
      for (std::uint64_t i = 0; i < k; ++i)
        for (std::uint64_t j = i; j < k; ++j) a[i * kBlock + j] -= a[i * kBlock + k] * a[j * kBlock + k];
    }
    return a;
  }

  ggufmill_metric metric() const { return {kColumns, kBlock, tiles.data(), inverse_a.data(), inverse_h.data()}; }
  const float* a(std::uint64_t first) const { return tiles.data() + 2 * first * kBlock; }
  const float* h(std::uint64_t first) const { return a(first) + kBlock * kBlock; }

  Floats tiles, inverse_a, inverse_h;
};

Floats random_rows(std::uint64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  Floats values(rows * kColumns);
  for (float& value : values) value = even(random) + even(random) + even(random);
  return values;
}

Bytes encoded(std::uint32_t type_id, const Floats& rows, std::uint64_t count) {
  const Floats importance(kColumns, 1.0f);
  for (std::uint32_t i = 0; i < ggufmill_reference_module.kernel_count; ++i) {
    const ggufmill_kernel& kernel = ggufmill_reference_module.kernels[i];
    if (kernel.operation != GGUFMILL_ENCODE || kernel.type_id != type_id || kernel.encoder) continue;
    Bytes bytes(count * kColumns / kernel.block_elements * kernel.block_bytes);
    const ggufmill_call call{
        rows.data(), bytes.data(), count, kColumns, importance.data(), sizeof(ggufmill_call), 0, 0, 0};
    REQUIRE(kernel.run(&call) == GGUFMILL_OK);
    return bytes;
  }
  FAIL("no encoder");
  return {};
}

void choose(const ggufmill_covariance_kernels& kernels, std::uint32_t type_id, const RandomMetric& random,
            std::span<const float> rows, std::span<std::uint8_t> bytes) {
  const std::uint64_t count = rows.size() / kColumns, groups = (count + GGUFMILL_LEVEL_ROWS - 1) / GGUFMILL_LEVEL_ROWS;
  std::vector<std::uint8_t> memory(groups * GGUFMILL_LEVEL_ROWS * kColumns * GGUFMILL_LEVEL_BYTES_PER_COLUMN + 64);
  auto* const aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  const ggufmill_metric metric = random.metric();
  const ggufmill_level_call call{type_id, 2, count, kColumns, rows.data(), bytes.data(), &metric, aligned};
  REQUIRE(kernels.choose_levels(&call) == 0);
}

bool is_here(const ggufmill_covariance_kernels& kernels) {
#if defined(__x86_64__)
  if (std::string(kernels.isa) == "x86-64-v3") return __builtin_cpu_supports("avx2");
  if (std::string(kernels.isa) == "x86-64-v4")
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
  return std::string(kernels.isa) == "reference";
}

std::vector<ggufmill_covariance_kernels> kernels_here() {
  std::vector<ggufmill_covariance_kernels> found;
  for (std::uint64_t i = 0; i < ggufmill_reference_covariances.count; ++i)
    if (is_here(ggufmill_reference_covariances.kernels[i])) found.push_back(ggufmill_reference_covariances.kernels[i]);
  return found;
}

// The plain loop, for one row of a format with a code book: columns whose points depend on each other are chosen
// together, from all entries of the book.
template <class Format>
class PlainRow {
 public:
  using Points = BookPoints<Format>;
  static constexpr int kDims = Points::kDims, kTogether = Format::kEvenSigns ? 8 : kDims;

  PlainRow(const RandomMetric& metric, const float* w, void* block) : metric_(metric), w_(w) {
    Points::points(block, points_);
    float offsets[kColumns / 16];
    Points::lines(block, scales_, offsets);
    for (std::uint64_t i = 0; i < kColumns; ++i) set_error(i);
    for (std::uint64_t first = 0; first < kColumns; first += kBlock) choose(first);
    Points::put_points(points_, block);
  }

 private:
  float scale_of(std::uint64_t column) const { return scales_[column / Format::kSubBlock]; }
  void set_error(std::uint64_t i) { e_[i] = w_[i] - scale_of(i) * points_[i]; }

  void choose(std::uint64_t first) {
    float sums[kBlock] = {};
    const float *const a = metric_.a(first), *const h = metric_.h(first);
    for (std::uint64_t i = 0; i < kBlock; i += kTogether) {
      float d[kTogether][kTogether], added[kTogether], wanted[kTogether], b[kTogether];
      for (int r = 0; r < kTogether; ++r)
        for (int c = 0; c <= r; ++c) {
          d[r][c] = 0;
          for (int k = r; k < kTogether; ++k) d[r][c] += a[(i + k) * kBlock + i + r] * a[(i + k) * kBlock + i + c];
          d[c][r] = d[r][c];
        }
      for (int k = 0; k < kTogether; ++k) {
        float missing = sums[i + k];
        for (int j = 0; j < k; ++j) missing -= added[j] * a[(i + k) * kBlock + i + j];
        added[k] = missing * metric_.inverse_a[first + i + k];
        wanted[k] = w_[first + i + k] + added[k];
      }
      aim(d, wanted, b);
      put(first + i, d, b, wanted, false);
      for (int of = 0; of < kTogether; ++of)
        for (std::uint64_t k = i + kTogether; k < kBlock; ++k) sums[k] += e_[first + i + of] * a[k * kBlock + i + of];
    }
    for (float& sum : sums) sum = 0;
    for (std::uint64_t k = 0; k < kBlock; ++k)
      for (std::uint64_t i = 0; i < kBlock; ++i) sums[k] += e_[first + i] * h[k * kBlock + i];
    for (int sweep = 0; sweep < 2; ++sweep)
      for (std::uint64_t i = 0; i < kBlock; i += kTogether) {
        float d[kTogether][kTogether], values[kTogether], wanted[kTogether], b[kTogether], errors[kTogether];
        for (int r = 0; r < kTogether; ++r) {
          for (int c = 0; c < kTogether; ++c) d[r][c] = h[(i + c) * kBlock + i + r];
          errors[r] = e_[first + i + r];
          values[r] = scale_of(first + i) * points_[first + i + r];
          wanted[r] = values[r] + sums[i + r] * metric_.inverse_h[first + i + r];
        }
        aim(d, values, b);
        for (int r = 0; r < kTogether; ++r) b[r] += sums[i + r];
        put(first + i, d, b, wanted, true);
        for (int r = 0; r < kTogether; ++r)
          for (std::uint64_t k = 0; k < kBlock; ++k) sums[k] += (e_[first + i + r] - errors[r]) * h[k * kBlock + i + r];
      }
  }

  using Square = float[kTogether][kTogether];

  static void aim(const Square& d, const float* y, float* b) {
    for (int r = 0; r < kTogether; ++r) {
      b[r] = 0;
      for (int c = 0; c < kTogether; ++c) b[r] += y[c] * d[r][c];
    }
  }

  static float form(const Square& d, const float* b, const float* y) {
    float sum = 0;
    for (int r = 0; r < kTogether; ++r) {
      float product = 0;
      for (int c = 0; c < kTogether; ++c) product += y[c] * d[r][c];
      sum += y[r] * (product - 2 * b[r]);
    }
    return sum;
  }

  void put(std::uint64_t column, const Square& d, const float* b, const float* wanted, bool must_be_better) {
    const float scale = scale_of(column);
    float signs[kTogether], values[kTogether], points[kTogether], current[kTogether];
    int negative = 0, cheapest = 0;
    for (int i = 0; i < kTogether; ++i) {
      signs[i] = wanted[i] < 0 ? -1.0f : 1.0f;
      negative += wanted[i] < 0 ? 1 : 0;
      if (wanted[i] * wanted[i] * d[i][i] < wanted[cheapest] * wanted[cheapest] * d[cheapest][cheapest]) cheapest = i;
      values[i] = wanted[i];
      current[i] = scale * points_[column + static_cast<std::uint64_t>(i)];
    }
    if (Format::kEvenSigns && negative % 2 != 0) signs[cheapest] = -signs[cheapest];
    for (int pass = 0; pass < kTogether / kDims; ++pass)
      for (int first = 0; first < kTogether; first += kDims) put_entry(first, d, b, signs, scale, values, points);
    if (scale == 0 || (must_be_better && !(form(d, b, values) < form(d, b, current)))) return;
    for (int i = 0; i < kTogether; ++i) {
      points_[column + static_cast<std::uint64_t>(i)] = points[i];
      set_error(column + static_cast<std::uint64_t>(i));
    }
  }

  // Chooses the best entry for kDims columns, given the values of the others.
  static void put_entry(int first, const Square& d, const float* b, const float* signs, float scale, float* values,
                        float* points) {
    float factors[kDims], least = std::numeric_limits<float>::infinity();
    int best = 0;
    for (int i = 0; i < kDims; ++i) {
      float given = b[first + i];
      for (int other = 0; other < kTogether; ++other)
        if (other / kDims != first / kDims) given -= values[other] * d[first + i][other];
      factors[i] = 2 * (signs[first + i] * scale) * given;
    }
    for (int entry = 0; entry < Points::kCount; ++entry) {
      float sum = 0;
      for (int i = kDims; i-- > 0;) {
        const float m = Format::kMagnitudes[Format::kBook[entry][i]], s = signs[first + i] * scale;
        float linear = -factors[i];
        for (int j = kDims; j-- > i + 1;)
          linear += s * (signs[first + j] * scale) * (2 * d[first + i][first + j]) *
                    static_cast<float>(Format::kMagnitudes[Format::kBook[entry][j]]);
        sum += m * (s * s * d[first + i][first + i] * m + linear);
      }
      if (!(sum < least)) continue;
      least = sum;
      best = entry;
    }
    for (int i = 0; i < kDims; ++i) {
      points[first + i] = signs[first + i] * Format::kMagnitudes[Format::kBook[best][i]];
      values[first + i] = scale * points[first + i];
    }
  }

  const RandomMetric& metric_;
  const float* w_;
  float points_[kColumns], scales_[kColumns / 16], e_[kColumns];
};

template <class Format>
void check_book() {
  const RandomMetric metric(1);
  const Floats rows = random_rows(70, 2);
  const Bytes start = encoded(Format::kTypeId, rows, 70);
  Bytes plain = start;
  for (std::uint64_t row = 0; row < 70; ++row)
    PlainRow<Format>(metric, rows.data() + row * kColumns, plain.data() + row * sizeof(typename Format::Block));
  CHECK(plain != start);
  for (const ggufmill_covariance_kernels& kernels : kernels_here()) {
    Bytes chosen = start;
    choose(kernels, Format::kTypeId, metric, rows, chosen);
    CHECK(chosen == plain);
  }
}

// The error of the products of all rows.
double loss_of(const PointAccess& type, const RandomMetric& metric, const Floats& rows, const Bytes& bytes) {
  double loss = 0;
  for (std::uint64_t row = 0; row < rows.size() / kColumns; ++row) {
    float e[kColumns];
    for (std::uint64_t at = 0; at < kColumns; at += type.elements) {
      float points[256], scales[16], offsets[16];
      const void* const block = bytes.data() + (row * kColumns + at) / type.elements * type.block_bytes;
      type.points(block, points);
      type.lines(block, scales, offsets);
      for (std::uint64_t i = 0; i < type.elements; ++i) {
        const std::uint64_t line = i / static_cast<std::uint64_t>(type.group);
        e[at + i] = rows[row * kColumns + at + i] - (scales[line] * points[i] + offsets[line]);
      }
    }
    for (std::uint64_t first = 0; first < kColumns; first += kBlock)
      for (std::uint64_t i = 0; i < kBlock; ++i)
        for (std::uint64_t k = 0; k < kBlock; ++k)
          loss += double{e[first + i]} * double{metric.h(first)[k * kBlock + i]} * double{e[first + k]};
  }
  return loss;
}

}  // namespace

TEST_CASE("points of code books are those of the plain loop") {
  check_book<Iq2XxsFormat>();
  check_book<Iq2XsFormat>();
  check_book<Iq2SFormat>();
  check_book<Iq3XxsFormat>();
  check_book<Iq3SFormat>();
}

TEST_CASE("points that are chosen with a covariance make the errors of products smaller") {
  const RandomMetric metric(3);
  const Floats rows = random_rows(16, 4);
  const auto share = [&](std::uint32_t type_id, const PointAccess& type) {
    const Bytes start = encoded(type_id, rows, 16);
    Bytes chosen = start;
    choose(kernels_here().back(), type_id, metric, rows, chosen);
    return loss_of(type, metric, rows, chosen) / loss_of(type, metric, rows, start);
  };
  CHECK(share(Iq2XxsFormat::kTypeId, BookPoints<Iq2XxsFormat>::access()) < 0.8);
  CHECK(share(Iq2XsFormat::kTypeId, BookPoints<Iq2XsFormat>::access()) < 0.8);
  CHECK(share(Iq2SFormat::kTypeId, BookPoints<Iq2SFormat>::access()) < 0.8);
  CHECK(share(Iq3XxsFormat::kTypeId, BookPoints<Iq3XxsFormat>::access()) < 0.8);
  CHECK(share(Iq3SFormat::kTypeId, BookPoints<Iq3SFormat>::access()) < 0.8);
  CHECK(share(MXFP4::kTypeId, points_in_levels<LevelsOfMxfp4>()) < 0.8);
  CHECK(share(NVFP4::kTypeId, points_in_levels<LevelsOfNvfp4>()) < 0.8);
}

TEST_CASE("code books are not chosen from where columns that depend on each other have no covariance") {
  const RandomMetric metric(5);
  const Floats rows = random_rows(1, 6);
  Bytes bytes = encoded(Iq3XxsFormat::kTypeId, rows, 1);
  ggufmill_metric narrow = metric.metric();
  narrow.block = 4;
  const ggufmill_level_call call{Iq3XxsFormat::kTypeId, 2, 1, kColumns, rows.data(), bytes.data(), &narrow, nullptr};
  CHECK(kernels_here().front().choose_levels(&call) == 1);
}

TEST_CASE("the levels of the 4-bit floats are in the order of their values") {
  MXFP4::Block block{};
  block.e = 128;  // 2, and half of it is 1
  for (int i = 0; i < 16; ++i) block.qs[i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
  float values[32], points[32], scale = 0, offset = 0;
  MXFP4::decode(block, values);
  points_of_levels<LevelsOfMxfp4>(&block, points);
  LevelsOfMxfp4::lines(block, &scale, &offset);
  for (int i = 0; i < 32; ++i) CHECK(scale * points[i] == values[i]);
  MXFP4::Block again = block;
  put_points_as_levels<LevelsOfMxfp4>(points, &again);
  float decoded[32];
  MXFP4::decode(again, decoded);
  for (int i = 0; i < 32; ++i) CHECK(decoded[i] == values[i]);
}

}  // namespace ggufmill::reference
