#include "pipeline/report/pages.h"

namespace ggufmill {

std::pair<std::string_view, std::string_view> around_data(std::string_view page) {
  constexpr std::string_view kPlace = "@DATA@";
  const std::size_t at = page.find(kPlace);
  return {page.substr(0, at), page.substr(at + kPlace.size())};
}

std::string page_with(std::string_view page, std::string_view data) {
  const auto [before, after] = around_data(page);
  return std::string(before) + std::string(data) + std::string(after);
}

}  // namespace ggufmill
