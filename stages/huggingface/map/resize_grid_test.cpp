#include "stages/huggingface/map/computed_tensors.h"

#include <cstring>

#include "pipeline/io/source_path.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

// A tensor of one column whose rows are 0, 1, 2, ...; kept in a file.
class Positions {
 public:
  explicit Positions(std::uint64_t count) {
    std::string bytes(4 * count, '\0');
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i);
      std::memcpy(&bytes[4 * i], &value, 4);
    }
    write_text(folder_.file("a"), bytes);
    const auto file = open_source(folder_.file("a")).value()->describe();
    tensor_ = expressions::extent(type_named("F32"), Shape{3, {1, count, 1, 1}}, {file, 0, 4 * count}).value();
  }
  Result<ExpressionRef> resized(boost::json::value side) const { return resize_grid(tensor_, {&side, 1}); }
  const ExpressionRef& tensor() const { return tensor_; }

 private:
  TempDir folder_;
  ExpressionRef tensor_;
};

}  // namespace

TEST_CASE("a grid is resized with its corners in place") {
  const Positions grid(4);  // 0 1 / 2 3
  const auto larger = grid.resized(3);
  REQUIRE(larger);
  CHECK(larger.value()->shape == Shape{3, {1, 9, 1, 1}});
  CHECK(larger.value()->values == std::vector<float>{0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
  CHECK(Positions(9).resized(2).value()->values == std::vector<float>{0, 2, 6, 8});
  CHECK(Positions(9).resized(1).value()->values == std::vector<float>{0});
  CHECK(grid.resized(2).value() == grid.tensor());
}

TEST_CASE("a grid that is resized is a square") {
  CHECK(Positions(8).resized(2).error().what == "1 x 8 x 1 does not have the positions of a square");
  CHECK(Positions(4).resized(0).error().what == "'0' is not a side from 1 to 4096");
}
