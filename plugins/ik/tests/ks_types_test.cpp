// The second search of IQ2_KS, which no kernel of the module offers, against the golden numbers.

#include "plugins/ik/ks_types.h"

#include "tests/conformance/golden_check.h"
#include "tests/support/catch.h"

namespace ggufmill::ik {
namespace {

struct Slow : IQ2_KS {
  static void encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
    encode_row_slow(x, importance, header, blocks, count);
  }
};
constexpr auto kKernels = row_kernels_of<Slow>();

}  // namespace

TEST_CASE("the slow search of IQ2_KS gives the bytes of --slow-iq2ks") {
  ggufmill_module module{};
  module.kernels = kKernels.data();
  module.kernel_count = kKernels.size();
  const auto rows = conformance::load_golden_table("plugins/ik/tests/kernels_iq2ks_slow.tsv");
  const conformance::GoldenResult result = conformance::check_golden(module, module, rows);
  CHECK(result.quantized.wrong == std::vector<std::string>());
  CHECK(result.dequantized.wrong == std::vector<std::string>());
  CHECK(result.quantized.right == rows.size());
}

}  // namespace ggufmill::ik
