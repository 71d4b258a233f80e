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
  const std::string page = curve_html({{"a<b>.gguf", {"reference", kCurve}}});
  CHECK(page.find("a&lt;b>.gguf") != std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(page.find("200 B loses 0.1: a bargain") != std::string::npos);
  CHECK(page.find("Q4_K: 250 B loses 0.3") != std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("the axes have names and round numbers") {
  const std::string page =
      curve_html({{"a", {"reference", {{"", 5'100'000, 1.24}, {"", 9'000'000, 0.011}, {"", 17'300'000, 0.00063}}}}});
  for (const char* part : {">bytes of all tensors<", ">loss (logarithmic)<", ">4 MiB<", ">6 MiB<", ">16 MiB<",
                           ">18 MiB<", ">0.0005<", ">0.001<", ">0.1<", ">2<"}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
}

TEST_CASE("few losses have marks between the powers of ten") {
  const std::string page = curve_html({{"a", {"reference", {{"", 100, 0.3}, {"", 200, 0.07}}}}});
  for (const char* part : {">0.5<", ">0.2<", ">0.1<", ">0.05<", ">100 B<", ">200 B<"}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
  CHECK(page.find(">0.01<") == std::string::npos);
}

TEST_CASE("the job's target is marked, and is not a bargain") {
  std::vector<CurvePoint> curve = kCurve;
  curve.push_back({"", 250, 0.095, true});
  CHECK(bargains(curve) == std::vector<bool>{false, true, false, false, false, false});
  const std::string page = curve_html({{"a", {"reference", curve}}});
  CHECK(page.find("this job's target, 250 B") != std::string::npos);
  CHECK(page.find("class=target ") != std::string::npos);
  CHECK(curve_html({{"a", {"reference", kCurve}}}).find("class=target ") == std::string::npos);
}

TEST_CASE("the curve of other encoders is drawn on the same axes and labelled") {
  const std::vector<CurvePoint> searched = {
      {"", 100, 0.8}, {"", 400, 0.004}, {"Q4_K", 250, 0.2}, {"", 250, 0.08, true}};
  const std::string page = curve_html({{"a", {"reference", kCurve, "search (effort 2, lattice)", searched}}});
  for (const char* part : {">0.002<", "class=other-line ", ">search</text>", ">reference</text>",
                           "Q4_K, search (effort 2, lattice): 250 B loses 0.2", "Q4_K, reference: 250 B loses 0.3"}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
  CHECK(page.find("class=target ") == std::string::npos);  // that of the other encoders is none of the job's
}
