#pragma once
// The kernel module that provides a foreign type, as identified in plans, manifests and measurements.

#include <string>

namespace ggufmill {

// One entry per module whose kernels decode or encode the type. Two builds with the same name and version differ in the
// hash.
struct TypeModule {
  std::string type;           // "X3_EXAMPLE"
  std::string name, version;  // name and version of the module
  std::string xxh3;           // 128-bit XXH3 of the module file: 32 hexadecimal digits

  bool operator==(const TypeModule&) const = default;
};

}  // namespace ggufmill
