#include "tests/cli/masks.h"

#include <regex>

namespace ggufmill {
namespace {

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

struct Mask {
  std::regex what;
  const char* by;
};

const Mask kMasks[] = {
    {std::regex("ggufmill [0-9]+\\.[0-9]+\\.[0-9]+"), "ggufmill VERSION"},
    {std::regex("in [0-9.]+ s \\([0-9]+ MB/s\\), [0-9.]+ [KMGi]*B of slabs at most, [a-z]+ I/O by [a-z_]+"), "in TIME"},
    {std::regex("[0-9.]+ [a-zA-Z]+ are free"), "FREE are free"},
    {std::regex("ISAs that can be had here: [-a-z0-9, ]+"), "ISAs that can be had here: ISAS"},
};

}  // namespace

std::string mask(std::string text, const std::string& folder) {
  replace_all(text, folder, "DIR");
  replace_all(text, GGUFMILL_BUILD_DIR, "BUILD");
  for (const Mask& each : kMasks) text = std::regex_replace(text, each.what, each.by);
  return text;
}

}  // namespace ggufmill
