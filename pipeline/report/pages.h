#pragma once
// Self-contained HTML pages. All have the same style, and the same colour for each type.

#include <string>
#include <string_view>
#include <utility>

namespace ggufmill {

extern const std::string_view kReportPage, kModelsPage, kMeasurePage, kCurvePage, kBatchPage;

// Returns the parts of a page before and after its data.
std::pair<std::string_view, std::string_view> around_data(std::string_view page);

// Returns the page with its data. `data` is script_text() of JSON, or markup whose text is html_text(), as the page
// requires.
std::string page_with(std::string_view page, std::string_view data);

}  // namespace ggufmill
