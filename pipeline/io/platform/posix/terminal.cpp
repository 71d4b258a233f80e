#include "pipeline/io/platform/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace ggufmill {
namespace {

int descriptor_of(StandardStream stream) { return stream == StandardStream::kOut ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

bool is_terminal(StandardStream stream) { return ::isatty(descriptor_of(stream)) != 0; }

bool is_color_terminal(StandardStream stream) {
  const char* const kind = std::getenv("TERM");
  return is_terminal(stream) && kind && std::string_view(kind) != "dumb";
}

TerminalSize terminal_size(StandardStream stream) {
  struct winsize window {};
  if (::ioctl(descriptor_of(stream), TIOCGWINSZ, &window) != 0) return {};
  return {window.ws_col, window.ws_row};
}

}  // namespace ggufmill
