#include "pipeline/io/platform/linux/kernel_files.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <new>

namespace ggufmill {

std::string kernel_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  std::string text;
  for (char piece[512]; file.read(piece, sizeof piece), file.gcount() > 0;)
    text.append(piece, static_cast<std::size_t>(file.gcount()));
  return file.bad() ? "" : text;
}

std::vector<unsigned> kernel_list(const std::string& text) {
  constexpr unsigned kMaxCpus = 1 << 20;  // more CPUs than a kernel can have
  std::vector<unsigned> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](unsigned& value) {
    const auto [after, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value >= kMaxCpus) return false;
    at = after;
    return true;
  };
  for (unsigned first = 0; number(first);) {
    unsigned last = first;
    if (at != end && *at == '-' && (++at, !number(last))) break;
    for (unsigned each = first; each <= last; ++each) numbers.push_back(each);
    if (at == end || *at != ',') break;
    ++at;
  }
  return numbers;
}

}  // namespace ggufmill
