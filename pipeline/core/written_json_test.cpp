#include "pipeline/core/written_json.h"

#include <boost/json/parse.hpp>
#include <limits>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("numbers are written as people write them") {
  const auto again = [](const char* text) { return written_json(boost::json::parse(text)); };
  CHECK(again("4.0") == "4.0");
  CHECK(again("4e0") == "4.0");
  CHECK(again("4") == "4");
  CHECK(again("18446744073709551615") == "18446744073709551615");
  CHECK(again("-0.5") == "-0.5");
  CHECK(again("1e-5") == "1e-05");
  CHECK(again("1e300") == "1e+300");
  CHECK(again("0.1") == "0.1");
  CHECK(again("-0.0") == "-0.0");
  CHECK(written_json(std::numeric_limits<double>::infinity()) == "Infinity");
}

TEST_CASE("other values are written as usual") {
  const char* text = R"({"a":[1.5,true,null,"x\"y\n"],"b":{},"c":[]})";
  CHECK(written_json(boost::json::parse(text)) == text);
}
