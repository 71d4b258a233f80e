#include "tests/support/files.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

void write_text(const std::string& path, std::string_view text) {
  std::ofstream out(stream_path(path), std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

std::string read_text(const std::string& path) {
  std::ifstream in(stream_path(path), std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error("cannot read " + path);
  return std::move(text).str();
}

FileStatus status_of(const std::string& path, Links links) {
  FileStatus status;
  if (kernel_calls().status_at(kCurrentFolder, path.c_str(), links, &status) != 0)
    throw std::runtime_error("no file " + path);
  return status;
}

void wait_for_later_time(const std::string& path) {
  const std::string clock = path + ".clock";
  do {
    write_text(clock, "");
  } while (status_of(clock).changed <= status_of(path).changed);
  fs::remove(clock);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ggufmill
