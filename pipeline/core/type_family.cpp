#include "pipeline/core/type_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Returns the members of all families in one list.
template <class Member>
std::vector<Member> all_of(std::span<const Member> TypeFamily::*members) {
  std::vector<Member> all;
  for (const TypeFamily& family : type_families())
    all.insert(all.end(), (family.*members).begin(), (family.*members).end());
  return all;
}

template <class Matches>
std::optional<FamilyMember> member_where(const Matches& matches) {
  for (const TypeFamily& family : type_families()) {
    for (const ModuleType& type : family.types)
      if (matches(type)) return FamilyMember{&family, type.name};
    for (const InterleavedType& type : family.interleaved)
      if (matches(type)) return FamilyMember{&family, type.name};
    for (const NotInterleaved& type : family.not_interleaved)
      if (matches(type)) return FamilyMember{&family, type.name, type.why};
  }
  return {};
}

}  // namespace

std::span<const InterleavedType> interleaved_types() {
  static const std::vector<InterleavedType> kTypes = all_of(&TypeFamily::interleaved);
  return kTypes;
}

InterleavedLayout interleaved_layout(std::string_view plain, std::uint32_t rows) {
  for (const TypeFamily& family : type_families())
    if (std::ranges::count(family.interleaved, plain, &InterleavedType::plain) != 0) return family.layout(plain, rows);
  std::abort();
}

std::optional<FamilyMember> family_member(TypeId id) {
  return member_where([&](const auto& type) { return type.id == id; });
}

std::optional<FamilyMember> family_member(std::string_view name) {
  return member_where([&](const auto& type) { return same_word(type.name, name); });
}

std::string type_help(const TypeFamily& family) {
  return fmt::format(
      "the kernel module {0} (package ggufmill-{0}) adds types of {1}; `ggufmill types` lists what is available",
      family.module, family.project);
}

std::string encoder_help(const TypeFamily& family) {
  return fmt::format(
      "the kernel module {0} (package ggufmill-{0}) adds this encoder, which quantizes types of llama.cpp as {1} does; "
      "`ggufmill kernels` lists the modules that are loaded",
      family.module, family.project);
}

}  // namespace ggufmill
