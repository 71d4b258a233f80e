#include "tests/support/files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ggufmill {

void write_text(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error("cannot read " + path);
  return std::move(text).str();
}

namespace {

std::pair<time_t, long> change_time(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) throw std::runtime_error("no file " + path);
  return {info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

}  // namespace

void wait_for_later_time(const std::string& path) {
  const std::string clock = path + ".clock";
  do {
    write_text(clock, "");
  } while (change_time(clock) <= change_time(path));
  std::filesystem::remove(clock);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ggufmill
