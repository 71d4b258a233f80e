#include "pipeline/report/report.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <tuple>

#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"

namespace ggufmill {

namespace {

// Returns the end of "blk.12" in "blk.12.attn_q.weight" or "enc.blk.12.ffn_up.weight"; npos if there is no such part.
std::size_t end_of_block(const std::string& tensor) {
  const std::size_t word = tensor.find("blk.");
  if (word == std::string::npos || (word != 0 && tensor[word - 1] != '.')) return std::string::npos;
  const std::size_t digits = word + 4, end = tensor.find_first_not_of("0123456789", digits);
  return end != digits && end != std::string::npos && tensor[end] == '.' ? end : std::string::npos;
}

// Sort key: "blk.2" before "blk.10", each family of layers at the position of its first layer, and parts without a
// number last.
struct LayerPlace {
  bool single;
  std::size_t family;
  std::size_t digits;  // of the number, without leading zeros
  std::string number;
  bool operator<(const LayerPlace& other) const {
    return std::tie(single, family, digits, number) < std::tie(other.single, other.family, other.digits, other.number);
  }
};

LayerPlace place_of(const std::string& layer, std::map<std::string, std::size_t>& families) {
  std::string number = layer.substr(layer.find_last_not_of("0123456789") + 1);
  const std::string family = layer.substr(0, layer.size() - number.size());
  number.erase(0, number.find_first_not_of('0'));
  const std::size_t place = families.emplace(family, families.size()).first->second;
  return {layer.size() == family.size(), place, number.size(), number};
}

bool is_changed(const ReportTensor& tensor) { return tensor.sums.difference > 0 || tensor.sums.not_finite > 0; }

namespace json = boost::json;

double bits_per_weight(std::uint64_t bytes, std::uint64_t weights) {
  return weights ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0;
}

json::array files_json(const std::vector<ReportFile>& files) {
  json::array list;
  for (const ReportFile& file : files) list.push_back({{"path", file.path}, {"bytes", file.bytes}});
  return list;
}

json::object statistics_json(const ErrorSums& sums) {
  const ErrorFigures statistics = statistics_of(sums);
  json::object object{{"rmse", json_number(statistics.rmse)},
                      {"largest", json_number(statistics.largest)},
                      {"cosine", json_number(statistics.cosine)},
                      {"relative", json_number(statistics.relative)},
                      {"weighted", json_number(statistics.weighted)}};
  if (sums.not_finite != 0) object["not_finite"] = sums.not_finite;
  return object;
}

// Error of values that are all as in the source.
json::object exact_json(bool weighted) {
  return {{"rmse", 0},
          {"largest", 0},
          {"cosine", 1},
          {"relative", 0},
          {"weighted", weighted ? json::value(0) : json::value()}};
}

json::value error_json(const ReportTensor& tensor) {
  if (tensor.state == ErrorState::kNotMeasured) return nullptr;
  if (tensor.state == ErrorState::kMeasured && tensor.sums.count + tensor.sums.not_finite > 0)
    return statistics_json(tensor.sums);
  return exact_json(tensor.importance);
}

json::value sums_json(const ErrorSums& sums, bool weighted) {
  return sums.count + sums.not_finite > 0 ? statistics_json(sums) : exact_json(weighted);
}

// Error of an output; null if a tensor was not measured.
json::value total_json(const ReportOutput& output) {
  if (not_measured(output) != 0) return nullptr;
  return sums_json(total_of(output), std::ranges::any_of(output.tensors, &ReportTensor::importance));
}

json::object tensor_json(const ReportTensor& tensor) {
  json::array shape;
  for (std::uint32_t i = 0; i < tensor.shape.rank; ++i) shape.push_back(tensor.shape.dims[i]);
  json::object object{{"name", tensor.name},
                      {"layer", layer_name(tensor.name)},
                      {"shape", shape},
                      {"weights", tensor.shape.elements()},
                      {"source_type", tensor.source_type->name},
                      {"type", tensor.type->name},
                      {"source_bytes", tensor.source_bytes},
                      {"bytes", tensor.bytes},
                      {"rule", tensor.rule},
                      {"importance", tensor.importance},
                      {"seconds", tensor.seconds},
                      {"error", error_json(tensor)}};
  if (tensor.fallback_from) object["fallback_from"] = tensor.fallback_from->name;
  if (is_exactly_quantized(tensor)) object["exact"] = true;
  if (const auto& its = tensor.held_out)
    object["held_out"] = json::object{{"loss", json_number(its->start > 0 ? its->chosen / its->start : 1)},
                                      {"shrink", {its->least_shrink, its->most_shrink}},
                                      {"rows", its->rows},
                                      {"searched", its->searched}};
  return object;
}

// Returns the share of each type in an output.
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
    json::object described{{"layer", layer.layer}, {"weights", nullptr}, {"error", nullptr}};
    if (layer.not_measured != 0) {
      described["not_measured"] = layer.not_measured;
    } else {
      described["weights"] = layer.sums.count;
      described["error"] = sums_json(layer.sums, layer.sums.weighted);
    }
    list.push_back(std::move(described));
  }
  return list;
}

json::array unmatched_json(const ReportOutput& output) {
  json::array list;
  for (const UnmatchedTensor& tensor : output.unmatched) list.push_back({{"name", tensor.name}, {"what", tensor.what}});
  return list;
}

json::object output_json(const ReportOutput& output, bool measured) {
  std::uint64_t weights = 0, bytes = 0, fallbacks = 0;
  for (const ReportTensor& tensor : output.tensors) {
    weights += tensor.shape.elements();
    bytes += tensor.bytes;
    fallbacks += tensor.fallback_from ? 1 : 0;
  }
  const std::size_t unknown = measured ? not_measured(output) : 0;
  json::object object{{"files", files_json(output.files)},
                      {"recipe", output.recipe},
                      {"weights", weights},
                      {"bytes", bytes},
                      {"bits_per_weight", bits_per_weight(bytes, weights)},
                      {"types", types_json(output)},
                      {"fallbacks", fallbacks},
                      {"changed_weights", unknown ? json::value() : json::value(total_of(output).count)},
                      {"error", total_json(output)},
                      {"layers", measured ? layers_json(output) : json::array()}};
  if (unknown != 0) object["not_measured"] = unknown;
  if (!output.choice.empty()) object["choice"] = output.choice;
  if (!output.unmatched.empty()) object["unmatched"] = unmatched_json(output);
  return object;
}

json::object head_json(const Report& report) {
  const RunFacts& run = report.run;
  return {{"format", "ggufmill-report"},
          {"version", kReportVersion},
          {"ggufmill", GGUFMILL_VERSION},
          {"kind", report.comparison ? "compare" : "run"},
          {"measured", report.measured},
          {"source",
           {{"name", report.name},
            {"architecture", report.architecture},
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

// Serializes an object without its closing brace, so that a list can follow that is never in memory as a tree.
std::string open_object(const json::object& object) {
  std::string text = to_json_text(object);
  text.pop_back();
  return text;
}

}  // namespace

bool is_exactly_quantized(const ReportTensor& tensor) {
  return tensor.state != ErrorState::kNotMeasured && !is_changed(tensor) && tensor.type != tensor.source_type &&
         tensor.type->is_quantized();
}

std::string layer_name(const std::string& tensor) {
  const std::size_t end = end_of_block(tensor);
  return tensor.substr(0, end == std::string::npos ? tensor.find('.') : end);
}

std::vector<LayerSums> layers_of(const ReportOutput& output) {
  std::map<std::string, std::size_t> families;
  std::map<LayerPlace, LayerSums> layers;
  for (const ReportTensor& tensor : output.tensors) {
    const std::string name = layer_name(tensor.name);
    LayerSums& layer = layers[place_of(name, families)];
    layer.layer = name;
    if (tensor.state == ErrorState::kNotMeasured) ++layer.not_measured;
    if (is_changed(tensor)) layer.sums.add(tensor.sums);
  }
  std::vector<LayerSums> ordered;
  ordered.reserve(layers.size());
  for (auto& [place, layer] : layers) ordered.push_back(std::move(layer));
  return ordered;
}

ErrorSums total_of(const ReportOutput& output) {
  ErrorSums total;
  for (const ReportTensor& tensor : output.tensors)
    if (is_changed(tensor)) total.add(tensor.sums);
  return total;
}

std::size_t not_measured(const ReportOutput& output) {
  return static_cast<std::size_t>(std::ranges::count(output.tensors, ErrorState::kNotMeasured, &ReportTensor::state));
}

void report_json(const Report& report, const TextSink& sink) {
  sink(open_object(head_json(report)) + ",\n\"outputs\":[");
  for (std::size_t o = 0; o < report.outputs.size(); ++o) {
    sink((o ? ",\n" : "\n") + open_object(output_json(report.outputs[o], report.measured)) + ",\"tensors\":[");
    const std::vector<ReportTensor>& tensors = report.outputs[o].tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) sink((i ? ",\n" : "\n") + to_json_text(tensor_json(tensors[i])));
    sink("\n]}");
  }
  sink("\n]}\n");
}

void report_html(const Report& report, const TextSink& sink) {
  const auto [before, after] = around_data(kReportPage);
  sink(before);
  report_json(report, [&](std::string_view piece) { sink(script_text(piece)); });
  sink(after);
}

}  // namespace ggufmill
