#pragma once
// Parts of the program that a build can omit: configs/wings.tsv, -DGGUFMILL_WITH. Only the wings that this build omits
// are known here. Constant and thread-safe.

#include <span>
#include <string>
#include <string_view>

namespace ggufmill {

struct OmittedWing {
  std::string_view name;   // as GGUFMILL_WITH names it
  std::string_view what;   // what it does, in a few words
  std::string_view words;  // patterns of the words with which users ask for it, see wing_has_word()
};
std::span<const OmittedWing> omitted_wings();

// Returns true if a word, in any letter case, matches one of the patterns, which are separated by spaces: `*` stands
// for any text, `?` for one character, and 97..511 for the numbers from 97 to 511.
bool wing_has_word(std::string_view words, std::string_view word);

// Returns help for a word that is unknown because this build omits a wing: how to build the program with it. Empty if
// no omitted wing has the word.
std::string omitted_wing_help(std::string_view word);

}  // namespace ggufmill
