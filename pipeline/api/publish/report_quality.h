#pragma once
// Adds the quality of outputs to the report of the run that wrote them.

#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// The quality of outputs, as JSON, by the path of their first file.
using QualityByPath = std::vector<std::pair<std::string, boost::json::object>>;

// Returns a report, as JSON or as a page, with the member `quality` of the outputs set; other outputs stay as they are.
std::string with_quality(std::string report, const QualityByPath& quality);

// Both do nothing for a file that does not exist, or that is no report. The second returns true if there is nothing to
// do.
Status add_quality(const std::string& path, const QualityByPath& quality);
bool has_quality(const std::string& path, const QualityByPath& quality);

}  // namespace ggufmill
