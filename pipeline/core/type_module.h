#pragma once
// The kernel module that brings a foreign type, as plans, manifests and measurements name it.

#include <string>

namespace ggufmill {

// One entry for each module whose kernels decode or encode the type. Two builds of one name and version differ in the
// hash.
struct TypeModule {
  std::string type;           // "X3_EXAMPLE"
  std::string name, version;  // of the module
  std::string xxh3;           // of its file, with 128 bits: 32 hexadecimal digits

  bool operator==(const TypeModule&) const = default;
};

}  // namespace ggufmill
