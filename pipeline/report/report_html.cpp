#include "pipeline/report/report.h"

namespace ggufmill {

// page.html, embedded at build time.
extern const std::string_view kReportPage;

namespace {

constexpr std::string_view kDataPlace = "@REPORT@";

// JSON as a script element may hold it: nothing in it ends the element or begins a comment.
std::string script_text(const std::string& json) {
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (const char c : json)
    if (c == '<' || c == '>' || c == '&')
      text += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      text += c;
  return text;
}

}  // namespace

std::string report_html(const Report& report) {
  const std::size_t place = kReportPage.find(kDataPlace);
  std::string page(kReportPage.substr(0, place));
  page += script_text(report_json(report));
  return page += kReportPage.substr(place + kDataPlace.size());
}

}  // namespace ggufmill
