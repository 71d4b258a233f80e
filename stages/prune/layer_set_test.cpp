#include "stages/prune/layer_set.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

LayerSet set_of(std::string_view text) {
  LayerSet set;
  REQUIRE(set.add(text));
  return set;
}

std::string fault(std::string_view text) {
  LayerSet set;
  const Status added = set.add(text);
  REQUIRE_FALSE(added);
  CHECK(set.empty());
  return added.error().what;
}

}  // namespace

TEST_CASE("numbers and ranges form one set") {
  const LayerSet set = set_of("5, 0-2 ,2-3,10");
  for (const std::uint64_t layer : {0, 1, 2, 3, 5, 10}) CHECK(set.contains(layer));
  for (const std::uint64_t layer : {4, 6, 9, 11}) CHECK_FALSE(set.contains(layer));
  CHECK(set.last() == 10);
  CHECK(set.count(0, 11) == 6);
  CHECK(set.count(3, 10) == 2);
  CHECK(set.count(11, 4) == 0);
}

TEST_CASE("a range of any length takes no memory") {
  const LayerSet set = set_of("0-2147483647");
  CHECK(set.count(0, kMaxLayers) == kMaxLayers);
}

TEST_CASE("anything but a layer number is refused") {
  CHECK(fault("") == "'' is neither a layer number nor a range");
  CHECK(fault("1,,2") == "'' is neither a layer number nor a range");
  CHECK(fault("-1") == "'-1' is neither a layer number nor a range");
  CHECK(fault("1-2-3") == "'1-2-3' is neither a layer number nor a range");
  CHECK(fault("0x7") == "'0x7' is neither a layer number nor a range");
  CHECK(fault("7-6") == "range '7-6' ends before it starts");
  CHECK(fault("2147483648") == "no model has a layer 2147483648");
  CHECK(fault("99999999999999999999") == "'99999999999999999999' is neither a layer number nor a range");
}
