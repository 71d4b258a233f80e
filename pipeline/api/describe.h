#pragma once
// JSON descriptions of plans, models, kernels and results: what `--json` prints and what the C interface returns.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/report/report.h"

namespace ggufmill {

struct TensorStatistics;

// Sums over the tensors of an output.
struct OutputTotals {
  std::uint64_t bytes_before = 0, bytes = 0, weights = 0;
  std::map<std::string_view, std::uint64_t> tensors_of_type;

  double bits_per_weight() const;
};
OutputTotals totals_of(const PlannedOutput& output);

// Returns the names of parts of a checkpoint.
boost::json::array parts_json(std::span<const ModelPart> parts);

// Returns {source: {files, tensors, parts}, outputs: [{part, files, problems, tensors, weights, tensor_bytes_from,
// tensor_bytes, bits_per_weight}], bytes_read, bytes_written, least_memory}.
boost::json::object describe_plan(const Plan& plan);

// Writes {files: [{path, bytes}], metadata: [{key, type, value}], tensors: [{name, shape, type, bytes, ...}]} piece by
// piece: a vocabulary as one JSON value would take many times its memory. `more`: further members of the object.
void describe_model(const Model& model, const TextSink& sink, const boost::json::object& more = {});

// Returns {tensor, type, count, zeros, not_finite, least, largest, mean, deviation, histogram}.
boost::json::object describe_statistics(const Tensor& tensor, const TensorStatistics& statistics);

// Returns {points: [{recipe, bytes, loss, target}]}.
boost::json::object describe_curve(const Curve& curve);

}  // namespace ggufmill
