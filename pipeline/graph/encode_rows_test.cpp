#include "pipeline/graph/encode_rows.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr std::uint64_t kColumns = 512, kRows = 3;

// Rows of a type, encoded by the reference and corrected.
class GainBench {
 public:
  explicit GainBench(std::string_view name) : type_(type_named(name)) {
    std::mt19937 random(1);
    for (float& value : x_) value = static_cast<float>(double(random()) / 4294967296.0 - 0.5);
    for (float& weight : weights_) weight = static_cast<float>(0.1 + double(random()) / 4294967296.0);
    bytes_.resize(kRows * row_bytes());
  }

  void encode(const float* importance) {
    run(*kernels_->encode(type_.id), {x_, bytes_.data(), kRows, kColumns, importance});
  }
  void correct(const float* weights, std::uint64_t first = 0, std::uint64_t rows = kRows) {
    const HalfKernels f16{*kernels_->decode(type_named("F16").id), *kernels_->encode(type_named("F16").id)};
    const ggufmill_call call{x_ + first * kColumns, bytes_.data() + first * row_bytes(), rows, kColumns, nullptr};
    REQUIRE(apply_row_gain(type_, *kernels_->decode(type_.id), f16, call, weights, "test"));
  }
  // Returns sum(w x y) / sum(w x x) of a row.
  double shrinkage(std::uint64_t row, const float* weights) const {
    std::vector<float> y(kRows * kColumns);
    run(*kernels_->decode(type_.id), {bytes_.data(), y.data(), kRows, kColumns, nullptr});
    double xx = 0, xy = 0;
    for (std::uint64_t i = 0; i < kColumns; ++i) {
      const double w = weights ? weights[i] : 1.0, x = x_[row * kColumns + i];
      xx += w * x * x;
      xy += w * x * double{y[row * kColumns + i]};
    }
    return xy / xx;
  }
  const float* weights() const { return weights_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::uint64_t row_bytes() const { return kColumns / type_.block_elements * type_.block_bytes; }
  static void run(const KernelChoice& choice, const ggufmill_call& call) {
    REQUIRE(choice.kernel->run(&call) == GGUFMILL_OK);
  }

  const TypeInfo& type_;
  std::shared_ptr<const Kernels> kernels_ = Kernels::load({}).value();
  float x_[kRows * kColumns], weights_[kColumns];
  std::vector<std::byte> bytes_;
};

constexpr double kHalfRounding = 1.0 / 1024;

}  // namespace

TEST_CASE("a gain ends the shrinkage of rows") {
  for (const TypeInfo& type : built_in_types()) {
    if (!has_gain(type)) continue;
    GainBench bench(type.name);
    bench.encode(bench.weights());
    bench.correct(bench.weights());
    for (std::uint64_t row = 0; row < kRows; ++row) {
      INFO(type.name << ", row " << row);
      CHECK(std::fabs(bench.shrinkage(row, bench.weights()) - 1) < kHalfRounding);
    }
  }
}

TEST_CASE("a gain without weights ends the unweighted shrinkage") {
  GainBench bench("Q2_K");
  bench.encode(nullptr);
  REQUIRE(std::fabs(bench.shrinkage(0, nullptr) - 1) > 0.005);
  bench.correct(nullptr);
  CHECK(std::fabs(bench.shrinkage(0, nullptr) - 1) < kHalfRounding);
}

TEST_CASE("the gain of a row does not depend on other rows") {
  GainBench together("Q2_K"), apart("Q2_K");
  together.encode(nullptr);
  apart.encode(nullptr);
  together.correct(together.weights());
  for (std::uint64_t row = 0; row < kRows; ++row) apart.correct(apart.weights(), row, 1);
  CHECK(together.bytes() == apart.bytes());
}

TEST_CASE("the searches are those of the types that have one") {
  const auto kernels = Kernels::load({}).value();
  for (const TypeInfo& type : built_in_types()) {
    INFO(type.name);
    CHECK((kernels->search(type.id) != nullptr) == has_search(type));
  }
}
