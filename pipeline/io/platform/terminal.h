#pragma once
// The terminal behind a standard stream.

#include <cstddef>

namespace ggufmill {

enum class StandardStream { kOut, kErr };

bool is_terminal(StandardStream stream);
// Returns true if it is a terminal that understands escape sequences for colors.
bool is_color_terminal(StandardStream stream);

// 0: unknown, or not a terminal.
struct TerminalSize {
  std::size_t columns = 0, rows = 0;
};
TerminalSize terminal_size(StandardStream stream);

}  // namespace ggufmill
