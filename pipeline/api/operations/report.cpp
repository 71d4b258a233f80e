// `report`: the page of a report that a run has written as JSON.

#include <fmt/format.h>

#include <optional>

#include "pipeline/api/operations/operations.h"
#include "pipeline/api/pages.h"
#include "pipeline/io/json_file.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"
#include "pipeline/report/report.h"

namespace ggufmill {
namespace {

struct ReportPageRequest {
  std::string path{};
  std::string output{};
  bool overwrite = false;
};

struct ReportPage {
  std::optional<std::string> path{};  // where the page was written
  std::optional<std::string> html{};  // the page, if it was not
};

std::optional<boost::json::value> json_of(const std::optional<std::string>& text) {
  return text ? std::optional<boost::json::value>(*text) : std::nullopt;
}

bool is_report(const boost::json::value& document) {
  const boost::json::object* const report = document.if_object();
  const boost::json::value* const format = report ? report->if_contains("format") : nullptr;
  return format && *format == "ggufmill-report";
}

Result<Answer<ReportPage>> run_report(const Context& context, const ReportPageRequest& request, const Call&) {
  BOOST_OUTCOME_TRY(const boost::json::value report, read_json(request.path));
  if (!is_report(report))
    return Error{ExitCode::kBadInput, request.path, "not a report of a run or a comparison", "",
                 "`ggufmill run --report FILE.json` and `ggufmill compare --json` write reports"};
  const boost::json::value* const version = report.get_object().if_contains("version");
  if (!version || *version != kReportVersion)
    return Error{ExitCode::kBadInput, request.path,
                 version ? fmt::format("is a report of version {}, but this program reads version {}",
                                       to_json_text(*version), kReportVersion)
                         : "is a report without a version",
                 "", "use the version of ggufmill that wrote it, or write the report again"};
  std::string page = page_with(kReportPage, script_text(to_json_text(report)));
  if (request.output.empty()) return Answer<ReportPage>{{.html = std::move(page)}};
  BOOST_OUTCOME_TRY(write_page(context, request.output, page, {request.path}, request.overwrite));
  return Answer<ReportPage>{{.path = request.output}};
}

ResultForm<ReportPage> report_result() {
  ResultForm<ReportPage> form{{result<ReportPage>(
                                   "path", [](const ReportPage& it) { return json_of(it.path); }, "path of the page"),
                               result<ReportPage>(
                                   "html", [](const ReportPage& it) { return json_of(it.html); }, "the page")}};
  form.members[0].when = "with @output";
  form.members[1].when = "without @output";
  return form;
}

}  // namespace

OperationSpec report_operation() {
  using Request = ReportPageRequest;
  return operation(OperationOf<ReportPageRequest, ReportPage>{
      .name = "report",
      .group = OperationGroup::kInspect,
      .summary = "Make the HTML page of a report that was written as JSON",
      .description =
          "Make the HTML page of a report that `ggufmill run` or `ggufmill compare` wrote as JSON: the same page that "
          "`run --report FILE.html` and `compare --html` write. Without @output, the page is the output.",
      .examples = "  ggufmill report run.json -o run.html",
      .options = {option("path", &Request::path, path(), "the report, JSON").word("REPORT"),
                  option("output", &Request::output, path(), "the page to write").short_flag('o'),
                  option("overwrite", &Request::overwrite, "replace an existing page")},
      .result = report_result(),
      .run = run_report,
      .print = [](const ReportPage& page, TextOutput& to) { to.out = page.html.value_or(""); }});
}

}  // namespace ggufmill
