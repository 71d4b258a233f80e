#include "tests/bench/report.h"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace ggufmill::bench {
namespace {

namespace json = boost::json;

std::string ratio(double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; }

std::string kernel_table(const std::vector<KernelTime>& times) {
  std::string out = fmt::format("{:<9} {:<19} {:<11} {:<12} {:>11} {:>7} {:>11} {:>9}\n", "type", "operation", "ISA",
                                "module", "Mweights/s", "GB/s", "x reference", "x memcpy");
  for (const KernelTime& t : times) {
    out +=
        fmt::format("{:<9} {:<19} {:<11} {:<12} {:>11.1f} {:>7.2f} {:>11} {:>9.3f}\n", t.type, t.operation, t.isa,
                    t.module, t.weights_per_second / 1e6, t.bytes_per_second / 1e9, ratio(t.of_reference), t.of_memcpy);
  }
  return out;
}

std::string file_row(const FileTime& t) {
  if (t.llama_seconds <= 0) return fmt::format("{:<9} {:>10.2f}\n", t.type, t.ggufmill_seconds);
  return fmt::format("{:<9} {:>10.2f} {:>16.2f} {:>7.2f}   {}\n", t.type, t.ggufmill_seconds, t.llama_seconds,
                     t.llama_seconds / t.ggufmill_seconds, t.same_bytes ? "same" : "DIFFERENT");
}

std::string file_table(const std::vector<FileTime>& times) {
  std::string out =
      fmt::format("{:<9} {:>10} {:>16} {:>7}   {}\n", "type", "ggufmill s", "llama-quantize s", "ratio", "bytes");
  for (const FileTime& time : times) out += file_row(time);
  return out;
}

json::object object(const KernelTime& t) {
  return {{"type", t.type},
          {"operation", t.operation},
          {"module", t.module},
          {"isa", t.isa},
          {"weights_per_second", t.weights_per_second},
          {"bytes_per_second", t.bytes_per_second},
          {"of_memcpy", t.of_memcpy},
          {"of_reference", t.of_reference}};
}

json::object object(const FileTime& t) {
  return {{"type", t.type},
          {"ggufmill_seconds", t.ggufmill_seconds},
          {"llama_seconds", t.llama_seconds},
          {"same_bytes", t.same_bytes}};
}

template <class Time>
json::array list(const std::vector<Time>& times) {
  json::array out;
  for (const Time& time : times) out.push_back(object(time));
  return out;
}

}  // namespace

std::string to_tables(const Report& report) {
  std::string out;
  if (!report.kernels.empty()) out += kernel_table(report.kernels) + "\n";
  if (!report.files.empty()) out += file_table(report.files);
  return out;
}

std::string to_json(const Report& report) {
  return json::serialize(json::object{{"kernels", list(report.kernels)}, {"files", list(report.files)}}) + "\n";
}

}  // namespace ggufmill::bench
