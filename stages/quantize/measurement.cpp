#include "stages/quantize/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "pipeline/core/covariance.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill measurement";
constexpr std::uint64_t kVersion = 3;
constexpr std::uint64_t kMaxBytes = 1 << 30;  // limit of the file size; 60,000 experts with 15 types need 50 MB

double figure_of(const json::value& number, std::string_view name) {
  boost::system::error_code error;
  const double figure = number.to_number<double>(error);
  if (error || !std::isfinite(figure) || figure < 0)
    throw InvalidJson{fmt::format("'{}' is not a number of 0 or more", name)};
  return figure;
}

double figure(const json::value& value, std::string_view name) { return figure_of(needed(value, name), name); }

std::uint64_t whole(const json::value& number, std::string_view name) {
  boost::system::error_code error;
  const auto figure = number.to_number<std::uint64_t>(error);
  if (error) throw InvalidJson{fmt::format("'{}' is not a non-negative integer", name)};
  return figure;
}

MeasuredTensor read_tensor(const json::value& value) {
  MeasuredTensor tensor;
  tensor.name = needed_text(value, "name");
  tensor.made_of = needed_text(value, "made_of");
  const json::array& dims = needed_list(value, "shape");
  if (dims.empty() || dims.size() > tensor.shape.dims.size()) throw InvalidJson{"'shape' is not a valid shape"};
  tensor.shape.rank = static_cast<std::uint32_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) tensor.shape.dims[i] = whole(dims[i], "shape");
  tensor.energy = figure(value, "energy");
  tensor.weighted = json_member(value, "weighted_energy") != nullptr;
  if (tensor.weighted) tensor.weighted_energy = figure(value, "weighted_energy");
  if (const json::value* rows = json_member(value, "rows")) tensor.rows = whole(*rows, "rows");
  for (const json::value& each : needed_list(value, "types")) {
    MeasuredType& type = tensor.types.emplace_back(MeasuredType{needed_text(each, "type"), needed_number(each, "bytes"),
                                                                figure(each, "error"),
                                                                tensor.weighted ? figure(each, "weighted_error") : 0});
    if (tensor.rows == 0) continue;
    type.standard_error = figure(each, "standard_error");
    if (tensor.weighted) type.weighted_standard_error = figure(each, "weighted_standard_error");
  }
  return tensor;
}

json::object tensor_json(const MeasuredTensor& tensor) {
  json::array shape, types;
  for (std::uint32_t i = 0; i < tensor.shape.rank; ++i) shape.push_back(tensor.shape.dims[i]);
  for (const MeasuredType& type : tensor.types) {
    json::object one{{"type", type.type}, {"bytes", type.bytes}, {"error", type.error}};
    if (tensor.weighted) one["weighted_error"] = type.weighted_error;
    if (tensor.rows != 0) one["standard_error"] = type.standard_error;
    if (tensor.rows != 0 && tensor.weighted) one["weighted_standard_error"] = type.weighted_standard_error;
    types.push_back(std::move(one));
  }
  json::object all{{"name", tensor.name}, {"made_of", tensor.made_of}, {"shape", std::move(shape)}};
  if (tensor.rows != 0) all["rows"] = tensor.rows;
  all["energy"] = tensor.energy;
  if (tensor.weighted) all["weighted_energy"] = tensor.weighted_energy;
  all["types"] = std::move(types);
  return all;
}

// Adds the sums of matrices to `to`; weighted sums only if there are any.
void add_sums(const MatrixSums& sums, const std::string& name, json::object& to) {
  to[name] = json::array(sums.plain.begin(), sums.plain.end());
  if (!sums.weighted.empty()) to["weighted_" + name] = json::array(sums.weighted.begin(), sums.weighted.end());
}

json::object matrices_json(const MeasuredTensor& tensor) {
  json::object all{{"tensor", tensor.name}};
  add_sums(tensor.matrices, "energy", all);
  json::array types;
  for (const MeasuredType& type : tensor.types) {
    json::object one{{"type", type.type}, {"bytes", type.bytes / tensor.matrices.plain.size()}};
    add_sums(type.matrices, "error", one);
    types.push_back(std::move(one));
  }
  all["types"] = std::move(types);
  return all;
}

MatrixSums read_sums(const json::value& value, const std::string& name, bool weighted) {
  MatrixSums sums;
  const auto read = [&](const std::string& list, std::vector<double>& into) {
    for (const json::value& number : needed_list(value, list)) into.push_back(figure_of(number, list));
  };
  read(name, sums.plain);
  if (weighted) read("weighted_" + name, sums.weighted);
  return sums;
}

// Reads the matrices of one tensor.
void read_matrices(const json::value& value, MeasuredTensor& tensor) {
  const auto checked = [&](MatrixSums sums) {
    if (sums.plain.size() != tensor.shape.dims[2] * tensor.shape.dims[3] ||
        (tensor.weighted && sums.weighted.size() != sums.plain.size()))
      throw InvalidJson{fmt::format("tensor {} has another number of matrices", quoted_name(tensor.name))};
    return sums;
  };
  tensor.matrices = checked(read_sums(value, "energy", tensor.weighted));
  for (const json::value& each : needed_list(value, "types")) {
    const auto type = std::ranges::find(tensor.types, needed_text(each, "type"), &MeasuredType::type);
    if (type == tensor.types.end()) throw InvalidJson{"'matrices' has a type that was not measured"};
    type->matrices = checked(read_sums(each, "error", tensor.weighted));
  }
}

// Reads the matrices of all tensors that have them, in the order of the tensors.
void read_matrices(const json::array& list, std::vector<MeasuredTensor>& tensors) {
  auto tensor = tensors.begin();
  for (const json::value& each : list) {
    tensor = std::ranges::find(tensor, tensors.end(), needed_text(each, "tensor"), &MeasuredTensor::name);
    if (tensor == tensors.end()) throw InvalidJson{"'matrices' is not in the order of 'tensors'"};
    read_matrices(each, *tensor);
  }
}

// Returns the squared error relative to the energy, from the weighted sums if there are any.
double share(double energy, double weighted_energy, double error, double weighted_error) {
  // A weighted energy of 0 (importance of 0 in all columns) carries no information.
  const bool by_weight = weighted_energy > 0;
  const double whole_energy = by_weight ? weighted_energy : energy;
  return whole_energy > 0 ? (by_weight ? weighted_error : error) / whole_energy : 0;
}

}  // namespace

const MeasuredType* MeasuredTensor::find(std::string_view type) const {
  const auto found = std::ranges::find(types, type, &MeasuredType::type);
  return found == types.end() ? nullptr : &*found;
}

double MeasuredTensor::relative_square(const MeasuredType& type) const {
  return share(energy, weighted ? weighted_energy : 0, type.error, type.weighted_error);
}

double MeasuredTensor::standard_error(const MeasuredType& type) const {
  return share(energy, weighted ? weighted_energy : 0, type.standard_error, type.weighted_standard_error);
}

double MeasuredTensor::relative_square(const MeasuredType& type, std::size_t matrix) const {
  return share(matrices.plain[matrix], weighted ? matrices.weighted[matrix] : 0, type.matrices.plain[matrix],
               weighted ? type.matrices.weighted[matrix] : 0);
}

const MeasuredTensor* Measurement::find(std::string_view tensor) const {
  const auto found = std::ranges::find(tensors, tensor, &MeasuredTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::string measured_identity(const Tensor& tensor, const EncodersByType& encoders) {
  std::string all = key_of(*tensor.expression, [](const SourceFile& source) {
    return fmt::format("#{} {:x} {}", source.bytes, source.header_hash, source.modified);
  });
  if (tensor.importance) all += " " + tensor.importance->fingerprint;
  if (tensor.covariance) all += " " + tensor.covariance->key();
  if (!tensor.encoder.is_reference()) all += " " + describe(tensor.encoder);
  std::vector<std::string> by_type;
  for (const auto& [type, encoder] : encoders) by_type.push_back(fmt::format(" {}: {}", type->name, describe(encoder)));
  std::ranges::sort(by_type);
  for (const std::string& each : by_type) all += each;
  return text_hash(all);
}

std::string write_measurement(const Measurement& measurement) {
  json::array sources, tensors, matrices;
  for (const SourceFile& source : measurement.sources)
    sources.push_back(json::object{{"path", source.path},
                                   {"bytes", source.bytes},
                                   {"header_hash", fmt::format("{:016x}", source.header_hash)},
                                   {"modified", source.modified}});
  for (const MeasuredTensor& tensor : measurement.tensors) {
    tensors.push_back(tensor_json(tensor));
    if (!tensor.matrices.plain.empty()) matrices.push_back(matrices_json(tensor));
  }
  return json::serialize(json::object{{"format", kFormat},
                                      {"version", kVersion},
                                      {"ggufmill", measurement.ggufmill},
                                      {"sources", std::move(sources)},
                                      {"modules", modules_json(measurement.modules)},
                                      {"tensors", std::move(tensors)},
                                      {"matrices", std::move(matrices)}}) +
         "\n";
}

Result<Measurement> read_measurement(const std::string& path) {
  BOOST_OUTCOME_TRY(const json::value root, read_json(path, kMaxBytes));
  if (json_string(root, "format") != kFormat)
    return input_error(path, "the file is not a ggufmill measurement", "`ggufmill measure JOB.yaml` creates one");
  try {
    if (const std::uint64_t version = needed_number(root, "version"); version == 0 || version > kVersion)
      return input_error(path,
                         fmt::format("measurement version {} is not supported (supported: 1 to {})", version, kVersion),
                         "measure again");
    Measurement measurement;
    measurement.ggufmill = needed_text(root, "ggufmill");
    if (json_member(root, "modules"))  // missing in measurements of earlier versions
      measurement.modules = read_modules(needed_list(root, "modules"));
    for (const json::value& tensor : needed_list(root, "tensors")) measurement.tensors.push_back(read_tensor(tensor));
    if (json_member(root, "matrices"))  // missing in measurements of earlier versions
      read_matrices(needed_list(root, "matrices"), measurement.tensors);
    return measurement;
  } catch (const InvalidJson& invalid_plan) {
    return input_error(path, "the file is not a valid measurement: " + invalid_plan.what, "measure again");
  }
}

std::string write_measured_line(const MeasuredTensor& tensor) {
  MeasuredTensor unnamed = tensor;
  unnamed.name.clear();
  json::object line{{"ggufmill", GGUFMILL_VERSION}, {"tensor", tensor_json(unnamed)}};
  if (!tensor.matrices.plain.empty()) line["matrices"] = matrices_json(unnamed);
  return json::serialize(line);
}

std::optional<MeasuredTensor> read_measured_line(std::string_view line) try {
  const auto root = parse_json("", line);
  if (!root || json_string(root.value(), "ggufmill") != GGUFMILL_VERSION) return {};
  MeasuredTensor tensor = read_tensor(needed(root.value(), "tensor"));
  const json::value* matrices = json_member(root.value(), "matrices");
  if (!matrices) return tensor;
  tensor.matrices = read_sums(*matrices, "energy", tensor.weighted);
  for (const json::value& each : needed_list(*matrices, "types")) {
    const auto type = std::ranges::find(tensor.types, needed_text(each, "type"), &MeasuredType::type);
    if (type == tensor.types.end()) return {};
    type->matrices = read_sums(each, "error", tensor.weighted);
  }
  return tensor;
} catch (const InvalidJson&) {
  return {};
}

}  // namespace ggufmill
