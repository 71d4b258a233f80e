#include <boost/json.hpp>
#include <map>

#include "pipeline/report/json_text.h"
#include "pipeline/report/report.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr int kVersion = 1;

double bits_per_weight(std::uint64_t bytes, std::uint64_t weights) {
  return weights ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0;
}

json::array files_json(const std::vector<SourceFile>& files) {
  json::array list;
  for (const SourceFile& file : files) list.push_back({{"path", json_text(file.path)}, {"bytes", file.bytes}});
  return list;
}

json::object figures_json(const ErrorSums& sums) {
  const ErrorFigures figures = figures_of(sums);
  json::object object{{"rmse", json_number(figures.rmse)},
                      {"largest", json_number(figures.largest)},
                      {"cosine", json_number(figures.cosine)},
                      {"relative", json_number(figures.relative)},
                      {"weighted", json_number(figures.weighted)}};
  if (sums.not_finite != 0) object["not_finite"] = sums.not_finite;
  return object;
}

json::value error_json(const ReportTensor& tensor) {
  if (tensor.state == ErrorState::kNotMeasured) return nullptr;
  if (tensor.state == ErrorState::kMeasured && tensor.sums.count + tensor.sums.not_finite > 0)
    return figures_json(tensor.sums);
  return json::object{{"rmse", 0},
                      {"largest", 0},
                      {"cosine", 1},
                      {"relative", 0},
                      {"weighted", tensor.importance ? json::value(0) : json::value()}};
}

json::object tensor_json(const ReportTensor& tensor) {
  json::array shape;
  for (std::uint32_t i = 0; i < tensor.shape.rank; ++i) shape.push_back(tensor.shape.dims[i]);
  json::object object{{"name", json_text(tensor.name)},
                      {"layer", json_text(layer_of(tensor.name))},
                      {"shape", shape},
                      {"weights", tensor.shape.elements()},
                      {"source_type", tensor.source_type->name},
                      {"type", tensor.type->name},
                      {"source_bytes", tensor.source_bytes},
                      {"bytes", tensor.bytes},
                      {"rule", json_text(tensor.rule)},
                      {"importance", tensor.importance},
                      {"seconds", tensor.seconds},
                      {"error", error_json(tensor)}};
  if (tensor.fallback_from) object["fallback_from"] = tensor.fallback_from->name;
  return object;
}

// How much of an output has which type.
json::array types_json(const ReportOutput& output) {
  struct Share {
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::map<std::string_view, Share> shares;
  for (const ReportTensor& tensor : output.tensors) {
    Share& share = shares[tensor.type->name];
    ++share.tensors;
    share.bytes += tensor.bytes;
  }
  json::array list;
  for (const auto& [type, share] : shares)
    list.push_back({{"type", type}, {"tensors", share.tensors}, {"bytes", share.bytes}});
  return list;
}

json::array layers_json(const ReportOutput& output) {
  json::array list;
  for (const LayerSums& layer : layers_of(output)) {
    json::object object{{"layer", json_text(layer.layer)}, {"weights", layer.sums.count}};
    object["error"] = layer.sums.count ? json::value(figures_json(layer.sums)) : json::value();
    list.push_back(std::move(object));
  }
  return list;
}

json::array unmatched_json(const ReportOutput& output) {
  json::array list;
  for (const UnmatchedTensor& tensor : output.unmatched)
    list.push_back({{"name", json_text(tensor.name)}, {"what", json_text(tensor.what)}});
  return list;
}

json::object output_json(const ReportOutput& output) {
  std::uint64_t weights = 0, bytes = 0, fallbacks = 0;
  for (const ReportTensor& tensor : output.tensors) {
    weights += tensor.shape.elements();
    bytes += tensor.bytes;
    fallbacks += tensor.fallback_from ? 1 : 0;
  }
  const ErrorSums total = total_of(output);
  json::object object{{"files", files_json(output.files)},
                      {"recipe", json_text(output.recipe)},
                      {"weights", weights},
                      {"bytes", bytes},
                      {"bits_per_weight", bits_per_weight(bytes, weights)},
                      {"types", types_json(output)},
                      {"fallbacks", fallbacks},
                      {"changed_weights", total.count},
                      {"error", total.count ? json::value(figures_json(total)) : json::value()},
                      {"layers", layers_json(output)}};
  if (!output.unmatched.empty()) object["unmatched"] = unmatched_json(output);
  return object;
}

json::object head_json(const Report& report) {
  const RunFacts& run = report.run;
  return {{"format", "ggufmill-report"},
          {"version", kVersion},
          {"ggufmill", GGUFMILL_VERSION},
          {"kind", report.comparison ? "compare" : "run"},
          {"measured", report.measured},
          {"source",
           {{"name", json_text(report.name)},
            {"architecture", json_text(report.architecture)},
            {"files", files_json(report.files)},
            {"tensors", report.tensors},
            {"weights", report.weights},
            {"bytes", report.bytes},
            {"bits_per_weight", bits_per_weight(report.bytes, report.weights)}}},
          {"run",
           {{"seconds", run.seconds},
            {"bytes_read", run.bytes_read},
            {"bytes_written", run.bytes_written},
            {"peak_memory", run.peak_memory},
            {"threads", run.threads},
            {"io", run.io},
            {"isa", run.isa}}}};
}

// An object but for its last brace, so that a list can follow that is never held as a tree.
std::string open_object(const json::object& object) {
  std::string text = json::serialize(object);
  text.pop_back();
  return text;
}

}  // namespace

void report_json(const Report& report, const TextSink& sink) {
  sink(open_object(head_json(report)) + ",\n\"outputs\":[");
  for (std::size_t o = 0; o < report.outputs.size(); ++o) {
    sink((o ? ",\n" : "\n") + open_object(output_json(report.outputs[o])) + ",\"tensors\":[");
    const std::vector<ReportTensor>& tensors = report.outputs[o].tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      sink((i ? ",\n" : "\n") + json::serialize(tensor_json(tensors[i])));
    sink("\n]}");
  }
  sink("\n]}\n");
}

}  // namespace ggufmill
