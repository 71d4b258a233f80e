#include "pipeline/report/report.h"

namespace ggufmill {

// page.html, embedded at build time.
extern const std::string_view kReportPage;

namespace {

constexpr std::string_view kDataPlace = "@REPORT@";

// JSON as a script element may hold it: nothing in it ends the element or begins a comment.
std::string script_text(std::string_view json) {
  std::string text;
  for (const char c : json)
    if (c == '<' || c == '>' || c == '&')
      text += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      text += c;
  return text;
}

}  // namespace

void report_html(const Report& report, const TextSink& sink) {
  const std::size_t place = kReportPage.find(kDataPlace);
  sink(kReportPage.substr(0, place));
  report_json(report, [&](std::string_view piece) { sink(script_text(piece)); });
  sink(kReportPage.substr(place + kDataPlace.size()));
}

}  // namespace ggufmill
