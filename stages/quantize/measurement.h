#pragma once
// Cost of every candidate type for every tensor of a model: a file written by `measure` and read by `quantize: {target:
// ...}`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/core/type_module.h"

namespace ggufmill {

// One sum for each matrix of a three-dimensional tensor, such as one matrix per expert; empty for other tensors.
struct MatrixSums {
  std::vector<double> plain, weighted;  // `weighted`: only with importance data
};

// Sums over all values a of a tensor and their decoded values b, extrapolated if only some rows were measured. w is the
// importance of the column, if available. A standard error is that of an error, given the tensor's energy; 0 if all
// rows were measured.
struct MeasuredType {
  std::string type;
  std::uint64_t bytes = 0;
  double error = 0;           // sum of (a - b)^2
  double weighted_error = 0;  // sum of w (a - b)^2
  MatrixSums matrices{};      // errors of each matrix; all matrices have the same number of bytes
  double standard_error = 0, weighted_standard_error = 0;
};

struct MeasuredTensor {
  std::string name;
  std::string made_of;  // result of measured_identity() for the tensor
  Shape shape;
  double energy = 0;                // sum of a^2
  double weighted_energy = 0;       // sum of w a^2
  bool weighted = false;            // importance data is available
  std::vector<MeasuredType> types;  // by increasing number of bytes
  MatrixSums matrices{};            // energy of each matrix
  std::uint64_t rows = 0;           // number of rows measured; 0: all

  const MeasuredType* find(std::string_view type) const;
  // Squared relative error of a type, from the weighted sums if there are any. 0 for a tensor of zeros.
  double relative_square(const MeasuredType& type) const;
  double relative_square(const MeasuredType& type, std::size_t matrix) const;
  // Standard error of relative_square(type).
  double standard_error(const MeasuredType& type) const;
};

// The file is a JSON object:
//   {format: "ggufmill measurement", version: 3, ggufmill,
//    sources: [{path, bytes, header_hash, modified}],
//    modules: [{type, name, version, xxh3}],
//    tensors: [{name, made_of, shape, rows, energy, weighted_energy,
//               types: [{type, bytes, error, weighted_error, standard_error, weighted_standard_error}]}],
//    matrices: [{tensor, energy: [..], weighted_energy: [..],
//                types: [{type, bytes, error: [..], weighted_error: [..]}]}]}
// Weighted numbers are present only with importance data; `rows`, the number of rows measured, and standard errors only
// if these are not all rows. `matrices` has an entry for each three-dimensional tensor, in
// the order of `tensors`; its `bytes` are those of one matrix.
struct Measurement {
  std::string ggufmill;  // version that measured
  std::vector<SourceFile> sources;
  std::vector<MeasuredTensor> tensors;
  std::vector<TypeModule> modules{};  // modules of the external types that were read or measured

  const MeasuredTensor* find(std::string_view tensor) const;
};

// Returns a hash of everything that determines a tensor's measurements: its expression, in which sources are identified
// by size, header hash and modification time, its importance, and its encoders: that of the tensor, and those of some
// types that replace it.
std::string measured_identity(const Tensor& tensor, const EncodersByType& encoders = {});

std::string write_measurement(const Measurement& measurement);
// Reads a measurement. The input is not trusted: all numbers are checked to be finite and not negative. Versions 1 and
// 2 are accepted. Fails with exit code 4.
Result<Measurement> read_measurement(const std::string& path);

// Serializes one tensor and its matrices as a line of JSON. The line contains the version of ggufmill, but not the
// tensor's name. Reading returns nullopt if the line was written by another version or is invalid.
std::string write_measured_line(const MeasuredTensor& tensor);
std::optional<MeasuredTensor> read_measured_line(std::string_view line);

}  // namespace ggufmill
