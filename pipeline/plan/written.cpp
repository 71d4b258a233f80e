#include "pipeline/plan/written.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>
#include <unordered_map>

#include "pipeline/core/covariance.h"
#include "pipeline/core/digest.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// Paths may contain any bytes; those that are not UTF-8 are written as {base64: ...}.
json::value text_json(const std::string& text) {
  if (is_utf8(text)) return json::string(text);
  return json::object{{"base64", base64_of(text)}};
}

json::array dims_json(const Shape& shape) {
  json::array dims;
  for (std::uint32_t i = 0; i < shape.rank; ++i) dims.push_back(shape.dims[i]);
  return dims;
}

// Numbers the objects shared by several parts of a plan, in order of first use.
template <class Key>
class Numbers {
 public:
  std::pair<std::size_t, bool> of(const Key& key) {
    const auto [entry, is_new] = numbers_.emplace(key, numbers_.size());
    return {entry->second, is_new};
  }

 private:
  std::map<Key, std::size_t> numbers_;
};

class Writer {
 public:
  json::object write(const Plan& plan) {
    json::array sources, steps, outputs;
    for (const SourceRef& source : plan.sources) {
      sources_.of(source.get());
      sources.push_back(source_json(*source));
    }
    for (const Step& step : plan.steps) steps.push_back(step_json(step));
    for (const PlannedOutput& output : plan.outputs) outputs.push_back(output_json(output));
    json::object all{{"format", kPlanFormat}, {"version", kPlanVersion},     {"ggufmill", GGUFMILL_VERSION},
                     {"sources", sources},    {"importances", importances_}, {"expressions", expressions_},
                     {"steps", steps},        {"outputs", outputs},          {"covariances", covariances_}};
    add_rest(plan, all);
    return all;
  }

 private:
  json::object source_json(const SourceFile& source) const {
    return {{"path", text_json(source.path)},
            {"bytes", source.bytes},
            {"header_hash", fmt::format("{:016x}", source.header_hash)},
            {"modified", source.modified}};
  }

  json::object extent_json(const Extent& extent) {
    return {{"source", sources_.of(extent.source.get()).first},
            {"offset", extent.offset},
            {"bytes", extent.bytes},
            {"big_endian", extent.big_endian}};
  }

  std::size_t expression_number(const Expression& node) {
    const auto [number, is_new] = nodes_.of(&node);
    if (!is_new) return written_.at(number);
    json::object object{
        {"operation", name_of(node.operation)}, {"type", node.type->name}, {"shape", dims_json(node.shape)}};
    if (const Extent* extent = node.as_extent()) object["extent"] = extent_json(*extent);
    json::array inputs;
    for (const ExpressionRef& input : node.inputs) inputs.push_back(expression_number(*input));
    if (!inputs.empty()) object["inputs"] = inputs;
    switch (node.operation) {
      case Operation::kSlice:
        object["first"] = node.first;
        [[fallthrough]];
      case Operation::kConcat:
        object["axis"] = node.axis;
        break;
      case Operation::kReorderRows:
        object["factors"] = json::value_from(node.factors);
        [[fallthrough]];
      case Operation::kTranspose:
        object["order"] = json::value_from(node.order);
        break;
      case Operation::kMap:
        object["function"] = node.map->name;
        object["parameter"] = node.parameter;
        break;
      case Operation::kScaleBlocks:
      case Operation::kAddBlocks:
        object["block"] = json::value_from(node.block);
        break;
      case Operation::kLowRank:
        object["scales"] = json::value_from(node.scales);
        break;
      case Operation::kRepack:
        object["function"] = node.repack->name;
        break;
      case Operation::kConstant:
        object["values"] = json::value_from(node.values);
        break;
      default:
        break;
    }
    expressions_.push_back(std::move(object));
    return written_[number] = expressions_.size() - 1;
  }

  json::object share_json(const ImportanceShare& share) {
    json::object object{{"calls", share.scale.calls}, {"sums", extent_json(share.sums)}};
    if (share.counts.bytes != 0) object["counts"] = extent_json(share.counts);
    if (share.scale.weight != 1) object["weight"] = share.scale.weight;
    if (share.scale.chunk_size != 0) object["chunk_size"] = share.scale.chunk_size;
    return object;
  }

  json::value importance_number(const std::shared_ptr<const Importance>& importance) {
    if (!importance) return nullptr;
    const auto [number, is_new] = importance_numbers_.of(importance.get());
    if (!is_new) return number;
    json::object object{
        {"columns", importance->columns}, {"matrices", importance->matrices}, {"fingerprint", importance->fingerprint}};
    object["name"] = importance->name;
    json::array shares;
    for (const ImportanceShare& share : importance->shares) shares.push_back(share_json(share));
    object["shares"] = std::move(shares);
    if (importance->substitute) {
      object["substitute"] = json::value_from(*importance->substitute);
      object["substituted"] = json::value_from(importance->substituted);
    }
    importances_.push_back(std::move(object));
    return number;
  }

  json::value covariance_number(const std::shared_ptr<const Covariance>& covariance) {
    const auto [number, is_new] = covariance_numbers_.of(covariance.get());
    if (!is_new) return number;
    json::value vectors;  // null if there are none
    if (covariance->held_out != 0) vectors = extent_json(covariance->vectors);
    covariances_.push_back({{"name", covariance->name},
                            {"sums", extent_json(covariance->sums)},
                            {"correlations", extent_json(covariance->correlations)},
                            {"columns", covariance->columns},
                            {"matrices", covariance->matrices},
                            {"block", covariance->block},
                            {"pooled", covariance->is_pooled},
                            {"held_out", covariance->held_out},
                            {"vectors", std::move(vectors)},
                            {"unused", json::value_from(covariance->unused)}});
    return number;
  }

  static json::object encoder_json(const Encoder& encoder) {
    json::object object{{"method", encoder.method->name},
                        {"lattice", kLatticeWords[static_cast<std::size_t>(encoder.lattice)]}};
    if (encoder.searches()) {
      object["effort"] = encoder.effort;
      object["weights"] = kSearchWeightWords[static_cast<std::size_t>(encoder.weights.value())];
    }
    if (!encoder.is_covariance()) return object;
    if (!chooses_shrink(encoder)) object["shrink"] = encoder.shrink;
    object["damp"] = encoder.damp;
    object["sweeps"] = encoder.sweeps;
    return object;
  }

  json::object step_json(const Step& step) {
    json::array encodings;
    for (const Encoding& encoding : step.encodings) {
      json::array places;
      for (const Place& place : encoding.places)
        places.push_back(json::array{place.output, place.file, place.tensor, place.offset});
      json::object one{{"type", encoding.type->name},
                       {"importance", importance_number(encoding.importance)},
                       {"places", std::move(places)}};
      if (encoding.big_endian) one["big_endian"] = true;
      if (!encoding.encoder.is_reference()) one["encoder"] = encoder_json(encoding.encoder);
      if (encoding.covariance) one["covariance"] = covariance_number(encoding.covariance);
      if (encoding.taken)
        one["taken"] = {{"made_of", encoding.taken->made_of}, {"xxh3", fmt::format("{:016x}", encoding.taken->xxh3)}};
      encodings.push_back(std::move(one));
    }
    json::object object{{"expression", expression_number(*step.expression)}, {"encodings", encodings}};
    object["name"] = step.name;
    if (step.compared) object["compared"] = expression_number(*step.compared);
    if (step.importance) object["importance"] = importance_number(step.importance);
    return object;
  }

  json::object output_json(const PlannedOutput& output) const {
    json::array files;
    for (const OutputFile& file : output.files) {
      json::array placements;
      for (const Placement& placement : file.tensors)
        placements.push_back(json::array{placement.tensor, placement.offset, placement.bytes});
      files.push_back({{"path", text_json(file.path)},
                       {"bytes", file.bytes},
                       {"header", base64_of(file.header)},
                       {"tensors", std::move(placements)}});
    }
    json::object object{{"files", std::move(files)}};
    object["origin"] = {{"where", text_json(output.origin.where)}, {"excerpt", text_json(output.origin.excerpt)}};
    object["recipe"] = output.recipe;
    if (!output.choice.empty()) object["choice"] = output.choice;
    json::array tensors;
    for (const PlannedTensor& tensor : output.tensors)
      tensors.push_back({{"name", tensor.name},
                         {"shape", dims_json(tensor.shape)},
                         {"from", tensor.source_type->name},
                         {"to", tensor.type->name},
                         {"bytes_from", tensor.source_bytes},
                         {"bytes", tensor.bytes},
                         {"why", tensor.reason},
                         {"importance", tensor.importance},
                         {"fallback_from", tensor.fallback_from ? json::value(tensor.fallback_from->name) : nullptr}});
    object["tensors"] = std::move(tensors);
    json::array problems;
    for (const Error& problem : output.problems) problems.push_back(error_json(problem));
    object["problems"] = std::move(problems);
    return object;
  }

  static json::value error_json(const Error& error) {
    return {{"code", static_cast<int>(error.code)},
            {"where", text_json(error.where)},
            {"what", text_json(with_plain_options(error.what))},
            {"detail", text_json(error.detail)},
            {"help", text_json(with_plain_options(error.help))}};
  }

  void add_rest(const Plan& plan, json::object& all) {
    json::array files, warnings;
    for (const SourceRef& file : plan.source.files) files.push_back(sources_.of(file.get()).first);
    for (const std::string& warning : plan.warnings) warnings.push_back(text_json(with_plain_options(warning)));
    all["source"] = {{"name", text_json(plan.source.name)},
                     {"architecture", text_json(plan.source.architecture)},
                     {"files", files},
                     {"tensors", plan.source.tensors},
                     {"weights", plan.source.weights},
                     {"bytes", plan.source.bytes}};
    all["manifest"] = plan.manifest;
    all["nonfinite"] = kNonfiniteWords[static_cast<std::size_t>(plan.nonfinite)];
    all["report"] = {
        {"error", plan.report.error}, {"json", text_json(plan.report.json)}, {"html", text_json(plan.report.html)}};
    json::array inputs;
    for (const std::string& path : plan.other_inputs) inputs.push_back(text_json(path));
    all["file"] = text_json(plan.file);
    all["other_inputs"] = std::move(inputs);
    all["trace"] = text_json(plan.trace);
    all["modules"] = modules_json(plan.modules);
    all["warnings"] = std::move(warnings);
  }

  Numbers<const SourceFile*> sources_;
  Numbers<const Expression*> nodes_;
  Numbers<const Importance*> importance_numbers_;
  Numbers<const Covariance*> covariance_numbers_;
  std::unordered_map<std::size_t, std::size_t> written_;  // node number -> index in expressions_
  json::array expressions_, importances_, covariances_;
};

}  // namespace

std::string write_plan(const Plan& plan) {
  json::object all = Writer().write(plan);
  all["identity"] = identity_of(plan);
  return json::serialize(all);
}

}  // namespace ggufmill
