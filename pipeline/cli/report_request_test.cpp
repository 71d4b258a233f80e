// Tests which report is requested by a pipeline file and options together.
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/registry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

std::optional<ReportRequest> of_file(const std::string& report) {
  Diagnostics errors;
  const auto job = parse_job("version: 1\nsource: {gguf: a}\noutputs: [{gguf: b}]\n" + report, "a.yaml",
                             make_registry(), {}, errors);
  for (const Error& error : errors.errors()) FAIL(render(error));
  return job->report;
}

}  // namespace

TEST_CASE("a pipeline file requests no report, a default one, or specific files") {
  CHECK_FALSE(of_file(""));
  REQUIRE(of_file("report: {}\n"));
  CHECK_FALSE(of_file("report: {}\n")->error);
  const ReportRequest all = *of_file("report: {error: true, json: a.json, html: b.html}\n");
  CHECK(all.error);
  CHECK(all.json == "a.json");
  CHECK(all.html == "b.html");
}

TEST_CASE("options add to the request, and its paths take precedence") {
  std::optional<ReportRequest> report = of_file("report: {json: a.json, html: b.html}\n");
  REQUIRE(add_report({"c.html"}, true, report));
  CHECK(report->error);
  CHECK(report->json == "a.json");
  CHECK(report->html == "c.html");
}

TEST_CASE("without options, no report is requested") {
  std::optional<ReportRequest> report;
  REQUIRE(add_report({}, false, report));
  CHECK_FALSE(report);
}

TEST_CASE("the file name extension selects the report format") {
  std::optional<ReportRequest> report;
  const Status read = add_report({"a.txt"}, false, report);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ExitCode::kUsage);
}

TEST_CASE("two reports of the same format are refused") {
  std::optional<ReportRequest> report;
  const Status read = add_report({"a.html", "b.json", "c.html"}, false, report);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ExitCode::kUsage);
  CHECK(OptionNames(Caller::kCommandLine, {}).in_error(read.error()).what ==
        "--report 'a.html' and --report 'c.html' have the same format");
}
