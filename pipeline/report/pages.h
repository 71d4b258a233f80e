#pragma once
// Pages for people, each one file that needs no other. All have the same style, and one colour for each type.

#include <string>
#include <string_view>
#include <utility>

namespace ggufmill {

extern const std::string_view kReportPage, kModelsPage, kMeasurePage, kCurvePage, kBatchPage;

// What stands before the data of a page, and after it.
std::pair<std::string_view, std::string_view> around_data(std::string_view page);

// `data`: script_text() of JSON, or markup whose text is html_text(), as the page takes it.
std::string page_with(std::string_view page, std::string_view data);

}  // namespace ggufmill
