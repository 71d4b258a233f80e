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
    const KernelCall call{x_ + first * kColumns, bytes_.data() + first * row_bytes(), rows, kColumns, nullptr};
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
  static void run(const KernelChoice& choice, const KernelCall& call) {
    REQUIRE(call_kernel(choice, call) == GGUFMILL_OK);
  }

  const TypeInfo& type_;
  std::shared_ptr<const Kernels> kernels_ = Kernels::load({}).value();
  float x_[kRows * kColumns], weights_[kColumns];
  std::vector<std::byte> bytes_;
};

constexpr double kHalfRounding = 1.0 / 1024;

// Rows of weights that were quantized to a type before, encoded with a search.
class LatticeBench {
 public:
  explicit LatticeBench(std::string_view name, std::uint64_t rows = kRows)
      : type_(type_named(name)), x_(rows * kColumns) {
    std::mt19937 random(2);
    for (float& value : x_) value = static_cast<float>(double(random()) / 4294967296.0 - 0.4);
    for (float& weight : weights_) weight = static_cast<float>(0.1 + double(random()) / 4294967296.0);
  }

  // Replaces rows by what the reference of `type` makes of them.
  void quantize(std::uint64_t first, std::uint64_t rows) {
    std::vector<std::byte> bytes(rows * row_bytes());
    float* x = x_.data() + first * kColumns;
    run(*kernels_->encode(type_.id), {x, bytes.data(), rows, kColumns, nullptr});
    run(*kernels_->decode(type_.id), {bytes.data(), x, rows, kColumns, nullptr});
  }
  // Rounds all values to BF16.
  void round_to_bf16() {
    std::vector<std::byte> bytes(x_.size() * 2);
    const TypeId bf16 = type_named("BF16").id;
    run(*kernels_->encode(bf16), {x_.data(), bytes.data(), kRows, kColumns, nullptr});
    run(*kernels_->decode(bf16), {bytes.data(), x_.data(), kRows, kColumns, nullptr});
  }

  std::vector<std::byte> encoded(Lattice lattice, std::uint64_t first = 0, std::uint64_t rows = kRows,
                                 Compensation compensation = Compensation::kNone) const {
    Encoder wanted = search_encoder();
    wanted.lattice = lattice;
    wanted.compensation = compensation;
    Encoding encoding;
    encoding.type = &type_;
    encoding.encoder = encoder_for(wanted, type_, true);
    BoundEncoding bound;
    const std::string name = "test";
    bound.encoding = &encoding;
    bound.name = &name;
    bound.encode = *kernels_->encode(type_.id, *encoding.encoder.method);
    bound.decode = *kernels_->decode(type_.id);
    bound.lattice = lattice == Lattice::kAuto ? Kernels::lattice(type_.id) : nullptr;
    bound.decode_half = *kernels_->decode(type_named("F16").id);
    bound.encode_half = *kernels_->encode(type_named("F16").id);
    std::vector<std::byte> bytes(rows * row_bytes());
    const KernelCall call{x_.data() + first * kColumns, bytes.data(), rows, kColumns, weights_};
    REQUIRE(encode_rows(bound, call, weights_));
    return bytes;
  }
  // Returns the weighted squared error of each row.
  std::vector<double> errors(const std::vector<std::byte>& bytes) const {
    std::vector<float> y(x_.size());
    run(*kernels_->decode(type_.id), {bytes.data(), y.data(), kRows, kColumns, nullptr});
    std::vector<double> errors(kRows);
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const double off = double{x_[i]} - double{y[i]};
      errors[i / kColumns] += double{weights_[i % kColumns]} * off * off;
    }
    return errors;
  }
  std::uint64_t row_bytes() const { return kColumns / type_.block_elements * type_.block_bytes; }

 private:
  static void run(const KernelChoice& choice, const KernelCall& call) {
    REQUIRE(call_kernel(choice, call) == GGUFMILL_OK);
  }

  const TypeInfo& type_;
  std::shared_ptr<const Kernels> kernels_ = Kernels::load({}).value();
  std::vector<float> x_;
  float weights_[kColumns];
};

std::vector<const TypeInfo*> types_of_lattices() {
  std::vector<const TypeInfo*> types;
  for (const TypeInfo& type : built_in_types())
    if (has_lattice(type)) types.push_back(&type);
  return types;
}

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
    CHECK((kernels->encode(type.id, search_method()) != nullptr) == has_search(type));
  }
}

TEST_CASE("the searches that compensate are those of the types that can be compensated") {
  const auto kernels = Kernels::load({}).value();
  for (const TypeInfo& type : built_in_types()) {
    if (!has_search(type)) continue;
    INFO(type.name);
    const std::uint32_t flags = kernels->encode(type.id, search_method())->kernel->flags;
    CHECK(((flags & GGUFMILL_COMPENSATES) != 0) == has_compensation(type));
  }
}

TEST_CASE("the lattice kernels are those of the types whose lattice is recognised") {
  for (const TypeInfo& type : built_in_types()) {
    INFO(type.name);
    CHECK((Kernels::lattice(type.id) != nullptr) == has_lattice(type));
    if (has_lattice(type)) CHECK(Kernels::lattice(type.id)->block_elements == type.block_elements);
    if (has_lattice(type)) CHECK((1024 % type.block_elements == 0 && type.bits_per_weight() <= 16));
  }
}

TEST_CASE("rows that were quantized before are encoded without further loss") {
  for (const TypeInfo* type : types_of_lattices()) {
    LatticeBench bench(type->name);
    bench.quantize(0, kRows);
    INFO(type->name);
    CHECK(bench.errors(bench.encoded(Lattice::kAuto)) == std::vector<double>(kRows));
  }
}

TEST_CASE("rows that were quantized and rounded to BF16 have at most the error of a search") {
  for (const TypeInfo* type : types_of_lattices()) {
    LatticeBench bench(type->name);
    bench.quantize(0, kRows);
    bench.round_to_bf16();
    const auto with = bench.errors(bench.encoded(Lattice::kAuto)), without = bench.errors(bench.encoded(Lattice::kOff));
    for (std::size_t row = 0; row < kRows; ++row) {
      INFO(type->name << ", row " << row << ": " << with[row] << ", " << without[row]);
      CHECK(with[row] <= without[row]);
    }
  }
}

TEST_CASE("rows that are not recognised have the bytes of the search") {
  LatticeBench bench("Q4_0");
  bench.quantize(1, 1);
  const std::vector<std::byte> with = bench.encoded(Lattice::kAuto), without = bench.encoded(Lattice::kOff);
  const auto row = static_cast<std::ptrdiff_t>(bench.row_bytes());
  CHECK(std::equal(with.begin(), with.begin() + row, without.begin()));
  CHECK(std::equal(with.begin() + 2 * row, with.end(), without.begin() + 2 * row));
  CHECK(bench.errors(with)[1] == 0);
}

TEST_CASE("a row is recognised whatever other rows are encoded with it") {
  LatticeBench bench("Q4_0");
  bench.quantize(0, 2);
  std::vector<std::byte> apart;
  for (std::uint64_t row = 0; row < kRows; ++row)
    for (const std::byte each : bench.encoded(Lattice::kAuto, row, 1)) apart.push_back(each);
  CHECK(bench.encoded(Lattice::kAuto) == apart);
}

TEST_CASE("rows are compensated in the same groups however many are encoded together") {
  constexpr std::uint64_t kTogether = Encoder::kRowsTogether, kAll = 2 * kTogether + 3;
  LatticeBench bench("Q4_0", kAll);
  bench.quantize(5, 2);  // recognised
  std::vector<std::byte> apart;
  for (std::uint64_t first = 0; first < kAll; first += kTogether)
    for (const std::byte each :
         bench.encoded(Lattice::kAuto, first, std::min(kTogether, kAll - first), Compensation::kRows))
      apart.push_back(each);
  CHECK(bench.encoded(Lattice::kAuto, 0, kAll, Compensation::kRows) == apart);
}

TEST_CASE("a row that is recognised does not change what the rows that are compensated with it become") {
  LatticeBench bench("Q4_0", 40);
  bench.quantize(5, 1);
  const auto with = bench.encoded(Lattice::kAuto, 0, 40, Compensation::kRows);
  const auto without = bench.encoded(Lattice::kOff, 0, 40, Compensation::kRows);
  const auto row = static_cast<std::ptrdiff_t>(bench.row_bytes());
  CHECK(std::equal(with.begin(), with.begin() + 5 * row, without.begin()));
  CHECK(std::equal(with.begin() + 6 * row, with.end(), without.begin() + 6 * row));
}
