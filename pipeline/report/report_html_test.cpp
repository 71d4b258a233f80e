#include <boost/json.hpp>

#include "pipeline/report/report.h"
#include "tests/support/catch.h"
#include "tests/support/report_maker.h"

using namespace ggufmill;
using testing::json_text_of;
using testing::measured_tensor;
using testing::page_of;
using testing::report_of;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What stands in the page's data element.
std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

}  // namespace

TEST_CASE("a page is whole and holds the JSON") {
  const Report report = report_of({measured_tensor("blk.0.a", {1, 2}, {1, 1})});
  const std::string page = page_of(report);
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  CHECK(page.find("</html>") != std::string::npos);
  CHECK(page.find('@' + std::string("REPORT@")) == std::string::npos);
  CHECK(page.find('@' + std::string("STYLE@")) == std::string::npos);
  CHECK(page.find('@' + std::string("SCRIPT@")) == std::string::npos);
  CHECK(boost::json::parse(data_of(page)) == boost::json::parse(json_text_of(report)));
}

TEST_CASE("a page asks for nothing from elsewhere") {
  const std::string page = page_of(report_of({}));
  for (const char* part : {"http:", "https:", "src=", "href=", "url(", "@import", "fetch("}) {
    INFO(part);
    CHECK(count_of(page, part) == 0);
  }
  CHECK(count_of(page, "default-src 'none'") == 1);
}

TEST_CASE("no name ends the data or begins markup") {
  const std::string name =
      GENERATE("</script><script>alert(1)</script>", "<!--<script>", "]]>&amp;\"'\\", "\xe2\x80\xa8");
  const std::string page = page_of(report_of({measured_tensor(name, {1}, {2})}));
  CHECK(count_of(page, "<script") == count_of(page_of(report_of({})), "<script"));
  CHECK(count_of(data_of(page), "<") == 0);
  const boost::json::value data = boost::json::parse(data_of(page));
  CHECK(data.at("outputs").at(0).at("tensors").at(0).at("name") == boost::json::string(name));
}
