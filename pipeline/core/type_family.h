#pragma once
// Families of types that come from other projects, whose GGUF files have them and whose kernels a module provides. A
// wing (configs/wings.tsv) registers its family in CMake: ggufmill_type_family(NAME SOURCES...), whose sources define
// the function NAME_type_family(). Everything here is constant and thread-safe.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/core/interleaved.h"

namespace ggufmill {

// A type whose blocks and kernels are those of the module.
struct ModuleType {
  TypeId id;
  std::string_view name;
};

struct TypeFamily {
  std::string_view module;   // the kernel module, whose package is ggufmill-MODULE
  std::string_view project;  // whose types they are
  std::string_view encoder;  // the module's encoder of built-in types; empty: none
  std::span<const ModuleType> types{};
  std::span<const InterleavedType> interleaved{};
  std::span<const NotInterleaved> not_interleaved{};
  // Returns the layout of a plain type of `interleaved`.
  InterleavedLayout (*layout)(std::string_view plain, std::uint32_t rows) = nullptr;
};

// The families of this build.
std::span<const TypeFamily> type_families();

// A type by which a family is known.
struct FamilyMember {
  const TypeFamily* family;
  std::string_view name;
  std::string_view why{};  // the reason why it is not supported; empty if it is supported with the module
};
std::optional<FamilyMember> family_member(TypeId id);
std::optional<FamilyMember> family_member(std::string_view name);  // ignores letter case

// Returns help for a type or an encoder of a family whose module is not loaded.
std::string type_help(const TypeFamily& family);
std::string encoder_help(const TypeFamily& family);

}  // namespace ggufmill
