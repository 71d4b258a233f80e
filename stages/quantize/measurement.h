#pragma once
// What every candidate type costs every tensor of a model: a file that `measure` writes and `quantize: {target: ...}`
// takes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/type_module.h"

namespace ggufmill {

// One sum for each matrix of a tensor of three dimensions, such as an expert's; empty for other tensors.
struct MatrixSums {
  std::vector<double> plain, weighted;  // `weighted`: where there is importance
};

// Over all values a of a tensor and b that stand for them; w: importance of the column, absent where there is none.
struct MeasuredType {
  std::string type;
  std::uint64_t bytes = 0;
  double error = 0;           // sum of (a - b)^2
  double weighted_error = 0;  // sum of w (a - b)^2
  MatrixSums matrices{};      // the errors of each; each has as many bytes
};

struct MeasuredTensor {
  std::string name;
  std::string made_of;  // measured_identity() of the tensor
  Shape shape;
  double energy = 0;                // sum of a^2
  double weighted_energy = 0;       // sum of w a^2
  bool weighted = false;            // there is importance
  std::vector<MeasuredType> types;  // by rising bytes
  MatrixSums matrices{};            // the energy of each

  const MeasuredType* find(std::string_view type) const;
  // The squared relative error of a type: of the weighted figures where there are some. 0 for a tensor of zeros.
  double relative_square(const MeasuredType& type) const;
  double relative_square(const MeasuredType& type, std::size_t matrix) const;
};

// {format: "ggufmill measurement", version: 2, ggufmill, sources: [{path, bytes, header_hash, modified}],
// modules: [{type, name, version, xxh3}], tensors: [{name, made_of, shape, energy, weighted_energy, types: [{type,
// bytes, error, weighted_error}]}], matrices: [{tensor, energy: [..], weighted_energy: [..], types: [{type, bytes,
// error: [..], weighted_error:
// [..]}]}]}; weighted figures only where there is importance; `matrices` of tensors of three dimensions, in the order
// of these, with the bytes of one matrix.
struct Measurement {
  std::string ggufmill;  // version
  std::vector<SourceFile> sources;
  std::vector<MeasuredTensor> tensors;
  std::vector<TypeModule> modules{};  // of the foreign types that were read or measured

  const MeasuredTensor* find(std::string_view tensor) const;
};

// A hash of what decides the figures of a tensor: its expression, whose sources count by their size, header hash and
// time, and its importance.
std::string measured_identity(const Tensor& tensor);

std::string write_measurement(const Measurement& measurement);
// Nothing in it is believed: figures are finite and not negative. What it says of matrices is for people and other
// programs: it is not read. Version 1, which had none, is read, too. Exit code 4.
Result<Measurement> read_measurement(const std::string& path);

// Whether a file begins as write_measurement() makes one, of whatever version.
bool is_measurement(const std::string& path);

// One tensor with its matrices as a line of JSON, in which this version of ggufmill is named; its name is not in it.
// Reading gives none where the line is of another version, or not sound.
std::string write_measured_line(const MeasuredTensor& tensor);
std::optional<MeasuredTensor> read_measured_line(std::string_view line);

}  // namespace ggufmill
