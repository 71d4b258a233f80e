#include "pipeline/graph/encode_rows.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr std::uint64_t kColumns = 512, kRows = 3;

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

  std::vector<std::byte> encoded(Lattice lattice, std::uint64_t first = 0, std::uint64_t rows = kRows) const {
    Encoder wanted = search_encoder();
    wanted.lattice = lattice;
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

TEST_CASE("the searches are those of the types that have one") {
  const auto kernels = Kernels::load({}).value();
  for (const TypeInfo& type : built_in_types()) {
    INFO(type.name);
    CHECK((kernels->encode(type.id, search_method()) != nullptr) == has_search(type));
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
