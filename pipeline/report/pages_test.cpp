#include "pipeline/report/pages.h"

#include <map>
#include <regex>
#include <set>

#include "pipeline/core/types.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

const std::map<std::string, std::string_view> kPages{{"report", kReportPage},
                                                     {"models", kModelsPage},
                                                     {"measure", kMeasurePage},
                                                     {"curve", kCurvePage},
                                                     {"batch", kBatchPage}};

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string between(std::string_view text, std::string_view first, std::string_view last) {
  const std::size_t begin = text.find(first) + first.size();
  return std::string(text.substr(begin, text.find(last, begin) - begin));
}

}  // namespace

TEST_CASE("every placeholder of a page is replaced") {
  for (const auto& [name, page] : kPages) {
    CAPTURE(name);
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(count_of(page, "@DATA@") == 1);
    for (const char* place : {"@TITLE@", "@STYLE@", "@BODY@", "@SCRIPT@"}) CHECK(count_of(page, place) == 0);
    CHECK(page_with(page, "").find("@DATA@") == std::string::npos);
  }
}

TEST_CASE("a page loads nothing external") {
  for (const auto& [name, page] : kPages)
    for (const char* part : {"http:", "https:", "src=", "href=", "url(", "@import", "fetch("}) {
      CAPTURE(name, part);
      CHECK(count_of(page, part) == 0);
      CHECK(count_of(page, "default-src 'none'") == 1);
    }
}

TEST_CASE("all pages have one style") {
  const std::string style = between(kReportPage, "<style>", "</style>");
  for (const auto& [name, page] : kPages) {
    CAPTURE(name);
    CHECK(between(page, "<style>", "</style>") == style);
    CHECK(count_of(page, "<style") == 1);
  }
}

TEST_CASE("each type has its own colour, the same on every page") {
  const std::string table = between(kReportPage, "const kTypeColours = {", "};");
  std::map<std::string, std::string> colours;
  const std::regex entry("(\\w+): (\\[[^\\]]+\\])");
  for (std::sregex_iterator each(table.begin(), table.end(), entry), end; each != end; ++each)
    colours[(*each)[1]] = (*each)[2];
  std::set<std::string> used;
  for (const auto types : {built_in_types(), source_types()})
    for (const TypeInfo& type : types) {
      CAPTURE(type.name);
      const auto found = colours.find(std::string(type.name));
      REQUIRE(found != colours.end());
      CHECK(used.insert(found->second).second);
    }
  CHECK(used.size() == colours.size());  // no colour is unused
  for (const auto& [name, page] : kPages) CHECK(between(page, "const kTypeColours = {", "};") == table);
}
