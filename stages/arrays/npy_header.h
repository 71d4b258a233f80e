#pragma once
// The header of a .npy file: magic, version, length, and a Python dictionary that says type, order and shape. Versions
// 1.0 to 3.0. Source: NumPy's description of the format, numpy/lib/format.py (BSD).

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/expression.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::arrays {

struct NpyHeader {
  const TypeInfo* type = nullptr;
  std::vector<std::uint64_t> dims;  // the slowest first; where `fortran_order`, the fastest first
  bool fortran_order = false;
  Extent data;
};

// Reads and checks a header; the data are the rest of the file. `type`: what elements of plain bytes ('V2') are, as
// NumPy has no name for BF16; null: they are an error. Exit code 4.
Result<NpyHeader> read_npy_header(const ByteSource& file, const TypeInfo* type);

// Whether NumPy has the type.
bool has_npy_type(const TypeInfo& type);
// The header of a file of such a type; `dims` with the slowest first. A multiple of 64 bytes.
std::string npy_header(const TypeInfo& type, const std::vector<std::uint64_t>& dims);

}  // namespace ggufmill::arrays
