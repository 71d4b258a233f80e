#include "pipeline/api/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/tensor_statistics.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {

namespace json = boost::json;

namespace {

json::object tensor_json(const PlannedTensor& tensor) {
  json::array shape;
  for (std::uint32_t i = 0; i < tensor.shape.rank; ++i) shape.push_back(tensor.shape.dims[i]);
  return {{"name", tensor.name},
          {"shape", shape},
          {"from", tensor.source_type->name},
          {"to", tensor.type->name},
          {"fallback_from", tensor.fallback_from ? json::value(tensor.fallback_from->name) : json::value()},
          {"bytes_from", tensor.source_bytes},
          {"bytes", tensor.bytes},
          {"importance", tensor.importance},
          {"why", tensor.reason}};
}

json::object output_json(const PlannedOutput& output) {
  const OutputTotals totals = totals_of(output);
  json::array files;
  for (const OutputFile& file : output.files) files.push_back({{"path", file.path}, {"bytes", file.bytes}});
  json::array tensors;
  for (const PlannedTensor& tensor : output.tensors) tensors.push_back(tensor_json(tensor));
  json::array problems;
  for (const Error& problem : output.problems) problems.push_back(json::string(problem.what));
  return {{"part", output.part ? json::value(part_name(*output.part)) : json::value()},
          {"files", files},
          {"recipe", output.recipe},
          {"problems", problems},
          {"tensors", tensors},
          {"weights", totals.weights},
          {"tensor_bytes_from", totals.bytes_before},
          {"tensor_bytes", totals.bytes},
          {"bits_per_weight", totals.bits_per_weight()}};
}

}  // namespace

double OutputTotals::bits_per_weight() const {
  return weights ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0;
}

OutputTotals totals_of(const PlannedOutput& output) {
  OutputTotals totals;
  for (const PlannedTensor& tensor : output.tensors) {
    totals.bytes_before += tensor.source_bytes;
    totals.bytes += tensor.bytes;
    totals.weights += tensor.shape.elements();
    ++totals.tensors_of_type[tensor.type->name];
  }
  return totals;
}

json::array parts_json(std::span<const ModelPart> parts) {
  json::array names;
  for (const ModelPart part : parts) names.emplace_back(part_name(part));
  return names;
}

json::object describe_plan(const Plan& plan) {
  json::array files;
  for (const SourceRef& file : plan.source.files) files.push_back({{"path", file->path}, {"bytes", file->bytes}});
  json::array outputs;
  for (const PlannedOutput& output : plan.outputs) outputs.push_back(output_json(output));
  return {{"source",
           {{"name", plan.source.name},
            {"architecture", plan.source.architecture},
            {"files", files},
            {"tensors", plan.source.tensors},
            {"weights", plan.source.weights},
            {"bytes", plan.source.bytes},
            {"parts", parts_json(plan.source.parts)}}},
          {"outputs", outputs},
          {"bytes_read", plan.bytes_read()},
          {"bytes_written", plan.bytes_written()},
          {"least_memory", plan.least_memory}};
}

json::object describe_statistics(const Tensor& tensor, const TensorStatistics& statistics) {
  json::array histogram;
  for (const std::uint64_t count : statistics.histogram) histogram.push_back(count);
  return {{"tensor", tensor.name},
          {"type", tensor.type->name},
          {"count", statistics.count},
          {"zeros", statistics.zeros},
          {"not_finite", statistics.not_finite},
          {"least", json_number(statistics.least)},
          {"largest", json_number(statistics.largest)},
          {"mean", json_number(statistics.mean)},
          {"deviation", json_number(statistics.deviation)},
          {"histogram", std::move(histogram)}};
}

namespace {

json::array describe_points(const std::vector<CurvePoint>& curve) {
  json::array points;
  for (const CurvePoint& point : curve)
    points.push_back({{"recipe", point.recipe.empty() ? json::value() : json::value(point.recipe)},
                      {"bytes", point.bytes},
                      {"loss", point.loss},
                      {"target", point.is_target}});
  return points;
}

}  // namespace

json::object describe_curve(const Curve& curve) {
  json::object described{{"encoder", curve.encoder}, {"points", describe_points(curve.points)}};
  if (!curve.other_points.empty())
    described["other"] = {{"encoder", curve.other_encoder}, {"points", describe_points(curve.other_points)}};
  return described;
}

}  // namespace ggufmill
