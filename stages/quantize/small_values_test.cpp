#include "stages/quantize/small_values.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Returns a tensor of one row, stored at byte 4 of a file with the given elements.
template <class Element>
ExpressionRef stored(const TempDir& folder, const char* type, const std::vector<Element>& elements) {
  std::string bytes(4 + elements.size() * sizeof(Element), '\0');
  std::memcpy(bytes.data() + 4, elements.data(), elements.size() * sizeof(Element));
  write_text(folder.file("values"), bytes);
  const auto source = std::make_shared<const SourceFile>(SourceFile{folder.file("values"), bytes.size(), 0, 0});
  const Shape shape{1, {elements.size(), 1, 1, 1}};
  return expressions::extent(type_named(type), shape, {source, 4, elements.size() * sizeof(Element)}).value();
}

}  // namespace

TEST_CASE("small values are read as they are stored") {
  const TempDir folder;
  CHECK(read_small_values(*stored<float>(folder, "F32", {1.5f, -2, 0})).value() == std::vector<float>{1.5f, -2, 0});
}

TEST_CASE("small values are computed from half precision") {
  const TempDir folder;
  const auto plus_one = [](const ExpressionRef& from) {
    const ExpressionRef values = expressions::cast(from, type_named("F32")).value();
    return read_small_values(*expressions::map(values, *find_map_function("add"), 1).value()).value();
  };
  CHECK(plus_one(stored<std::uint16_t>(folder, "BF16", {0x3f80, 0xc000})) == std::vector<float>{2, -1});
  CHECK(plus_one(stored<std::uint16_t>(folder, "F16", {0x3c00, 0xc000, 0x0001})) ==
        std::vector<float>{2, -1, 1 + 0x1p-24f});
}

TEST_CASE("values that are quantized or not there are errors") {
  const TempDir folder;
  const ExpressionRef half = stored<std::uint16_t>(folder, "F16", {0, 0});
  CHECK(read_small_values(*half).error().what == "it is F16, so its values are not read");
  const ExpressionRef full = stored<float>(folder, "F32", {1});
  write_text(folder.file("values"), "");
  CHECK_FALSE(read_small_values(*full));
}
