#include "pipeline/io/platform/terminal.h"

#include <windows.h>

namespace ggufmill {
namespace {

HANDLE handle_of(StandardStream stream) {
  return ::GetStdHandle(stream == StandardStream::kOut ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE);
}

}  // namespace

bool is_terminal(StandardStream stream) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(stream), &mode) != 0;
}

bool is_color_terminal(StandardStream stream) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(stream), &mode) && (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

TerminalSize terminal_size(StandardStream stream) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (!::GetConsoleScreenBufferInfo(handle_of(stream), &info)) return {};
  const SMALL_RECT& window = info.srWindow;
  return {static_cast<std::size_t>(window.Right - window.Left + 1),
          static_cast<std::size_t>(window.Bottom - window.Top + 1)};
}

}  // namespace ggufmill
