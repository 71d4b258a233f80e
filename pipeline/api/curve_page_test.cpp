#include "pipeline/api/curve_page.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

const std::vector<CurvePoint> kCurve = {
    {"", 100, 1}, {"", 200, 0.1}, {"", 300, 0.09}, {"", 400, 0.05}, {"Q4_K", 250, 0.3}};

}  // namespace

TEST_CASE("a bargain is a size whose step saved more than the next one does") {
  CHECK(bargains(kCurve) == std::vector<bool>{false, true, false, false, false});
  CHECK(bargains({}).empty());
  CHECK(bargains({{"", 100, 0}, {"", 200, 0}, {"", 300, 0}}) == std::vector<bool>{false, false, false});
}

TEST_CASE("the page has every point, and names as text") {
  const std::string page = curve_html({{"a<b>.gguf", kCurve}});
  CHECK(page.find("a&lt;b>.gguf") != std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(page.find("200 B loses 0.1: a bargain") != std::string::npos);
  CHECK(page.find("Q4_K: 250 B loses 0.3") != std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
}
