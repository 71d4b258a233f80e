#pragma once
// Header of a .npy file: magic, version, length, and a Python dictionary with type, order and shape. Supports versions
// 1.0 to 3.0. Source: NumPy's description of the format, numpy/lib/format.py (BSD).

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/expression.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::arrays {

struct NpyHeader {
  const TypeInfo* type = nullptr;
  std::vector<std::uint64_t> dims;  // slowest dimension first; with `fortran_order`, fastest first
  bool fortran_order = false;
  Extent data;
};

// Reads and checks a header; the data is the rest of the file. `type` is the type of elements described as plain bytes
// ('V2'), because NumPy has no name for BF16; null: such elements are an error. Fails with exit code 4.
Result<NpyHeader> read_npy_header(const ByteSource& file, const TypeInfo* type);

// Returns true if NumPy supports the type.
bool has_npy_type(const TypeInfo& type);
// Returns the header of a file of this type, padded to a multiple of 64 bytes. `dims` has the slowest dimension first.
std::string npy_header(const TypeInfo& type, const std::vector<std::uint64_t>& dims);

}  // namespace ggufmill::arrays
