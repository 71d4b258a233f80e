#pragma once
// The arguments of llama.cpp's tools as tables. A row declares an argument for the command line, its help, completion
// and manual page, and for the C interface; a new argument is one member of the options and one row.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ggufmill {

// An argument that is stored in a member of `Options`. The kind of the member decides what the argument takes: nothing
// (bool), a number, a text, or a text that may be given several times. A default is the member's value in a
// default-constructed `Options`, unless that is an empty text.
template <class Options>
struct Argument {
  const char* name;  // without dashes: "imatrix"
  std::variant<bool Options::*, std::uint64_t Options::*, std::optional<std::uint64_t> Options::*,
               std::string Options::*, std::optional<std::string> Options::*, std::vector<std::string> Options::*>
      member;
  const char* help;
};

// Help of --architectures, which all verbs that read checkpoints have.
inline constexpr const char* kArchitecturesHelp =
    "folder of architecture maps, or one map file, to add to the built-in ones";

}  // namespace ggufmill
