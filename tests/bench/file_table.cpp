#include <fmt/format.h>

#include "tests/bench/report.h"

namespace ggufmill::bench {
namespace {

std::string columns(const ProgramTime& t) {
  return fmt::format(" {:>8.2f} {:>8.2f} {:>8.0f}", t.seconds, t.cpu_seconds, t.peak_mebibytes);
}

std::string line(const FileTime& t) {
  std::string out = fmt::format("{:<9}", t.type) + columns(t.ggufmill);
  if (t.ratio > 0)
    out += columns(t.llama_quantize) +
           fmt::format(" {:>7.2f} {:>7.2f}  {}", t.ratio, t.cpu_ratio, t.same_bytes ? "same" : "DIFFERENT");
  return out + "\n";
}

}  // namespace

std::string file_table(const std::vector<FileTime>& times) {
  if (times.empty()) return {};
  const bool both = times.front().ratio > 0;
  std::string head = fmt::format("{:<9} {:>26}", "files", "ggufmill");
  std::string names = fmt::format("{:<9} {:>8} {:>8} {:>8}", "type", "s", "CPU s", "peak MiB");
  if (both) {
    head += fmt::format(" {:>26} {:>15}", "llama-quantize", "times as long");
    names += fmt::format(" {:>8} {:>8} {:>8} {:>7} {:>7}  bytes", "s", "CPU s", "peak MiB", "s", "CPU s");
  }
  std::string out = head + "\n" + names + "\n";
  for (const FileTime& time : times) out += line(time);
  return out;
}

}  // namespace ggufmill::bench
