#include "pipeline/api/publish/report_quality.h"

#include <optional>

#include "pipeline/api/reports.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/source_path.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMostReportBytes = 1 << 30;

// Returns the report at a path with quality, and whether that changes it; none if there is no report.
std::optional<std::pair<std::string, bool>> changed(const std::string& path, const QualityByPath& quality) {
  if (path.empty() || !is_file(path)) return {};
  const auto text = read_text_file(path, kMostReportBytes);
  if (!text || text.value().find("\"format\":\"ggufmill-report\"") == std::string::npos) return {};
  std::string with = with_quality(text.value(), quality);
  const bool is_other = with != text.value();
  return std::pair(std::move(with), is_other);
}

}  // namespace

// Every output begins a line (report_json()), with the member `files` first, or second after `quality`.
std::string with_quality(std::string report, const QualityByPath& quality) {
  for (const auto& [path, object] : quality) {
    const std::string files = "\"files\":[{\"path\":" + script_text(to_json_text(boost::json::value(path))) + ",";
    const std::size_t at = report.find(files, report.find("\"outputs\":["));
    if (at == std::string::npos) continue;
    const std::size_t line = report.rfind('\n', at) + 1;
    report.replace(line, at - line, "{\"quality\":" + script_text(to_json_text(object)) + ",");
  }
  return report;
}

Status add_quality(const std::string& path, const QualityByPath& quality) {
  const auto report = changed(path, quality);
  return report && report->second ? write_text(path, report->first, true) : Status(ok());
}

bool has_quality(const std::string& path, const QualityByPath& quality) {
  const auto report = changed(path, quality);
  return !report || !report->second;
}

}  // namespace ggufmill
