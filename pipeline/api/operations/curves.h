#pragma once
// The loss of the best choice of types at each size, for outputs with a target.

#include <string>
#include <vector>

#include "pipeline/api/context.h"

namespace ggufmill {

struct JobCurve {
  std::size_t output = 0;  // its number
  Curve curve{};
};

// Returns the curves of all outputs with a target. Fails with exit code 2 if there are none.
Result<std::vector<JobCurve>> curves_of(const Context& context, const Job& job);
// Writes an HTML page. Fails with exit code 2 if the path is that of an input, or exists and `overwrite` is false.
Status write_curves_page(const Context& context, const Job& job, const std::vector<JobCurve>& curves,
                         const std::string& path, bool overwrite);
std::string text_of(const Curve& curve);

}  // namespace ggufmill
