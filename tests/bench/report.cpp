#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <string_view>

#include "tests/bench/report.h"

namespace ggufmill::bench {
namespace {

using Rows = std::vector<KernelRow>;
using Names = std::vector<std::string>;

// Returns true for the contenders that others are measured against. The table shows only their speed.
bool is_base(std::string_view name) { return name == "reference" || name == "ggml" || name == "memcpy"; }

bool is_decode(const KernelRow& row) { return row.operation == "decode"; }

const KernelTime* find(const KernelRow& row, const std::string& name) {
  const auto found = std::ranges::find(row.times, name, &KernelTime::name);
  return found == row.times.end() ? nullptr : &*found;
}

// Returns the names of all contenders, in the order of the rows.
Names names_of(const Rows& rows) {
  Names names;
  for (const KernelRow& row : rows)
    for (const KernelTime& time : row.times)
      if (std::ranges::find(names, time.name) == names.end()) names.push_back(time.name);
  std::stable_partition(names.begin(), names.end(), is_base);
  return names;
}

std::string verdict(const KernelTime& time) {
  if (!time.same_bytes) return "DIFFERENT";
  return time.target ? fmt::format("{} {:g}", time.met ? "met" : "MISS", *time.target) : "";
}

std::string number(double value, int digits) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-"; }

class Table {
 public:
  Table(const Rows& rows, bool decodes) : rows_(rows), names_(names_of(rows)), decodes_(decodes) {
    for (const KernelRow& row : rows_)
      for (const KernelTime& time : row.times) has_ggml_ = has_ggml_ || time.of_ggml > 0;
  }

  std::string text() const {
    std::string out = heads() + columns();
    for (const KernelRow& row : rows_) {
      out += fmt::format("{:<9}{:<21}{:<7}", row.type, row.operation, row.place);
      for (const std::string& name : names_) out += cell(name, find(row, name));
      while (out.back() == ' ') out.pop_back();
      out += '\n';
    }
    return out;
  }

 private:
  std::string heads() const {
    std::string out = fmt::format("{:<37}", decodes_ ? "decoders" : "encoders");
    for (const std::string& name : names_) out += fmt::format("{:>{}}", name, is_base(name) ? 10 : width());
    return out + "\n";
  }

  std::string columns() const {
    std::string out = fmt::format("{:<9}{:<21}{:<7}", "type", "", "data");
    for (const std::string& name : names_) {
      out += fmt::format("{:>10}", name == "memcpy" ? "GB/s" : "Mw/s");
      if (is_base(name)) continue;
      out += fmt::format("{:>7}{:>8}", "GB/s", has_ggml_ ? "x ggml" : "x ref");
      out += fmt::format("{}{:>10}", decodes_ ? "  x copy" : "", "target");
    }
    return out + "\n";
  }

  std::size_t width() const { return decodes_ ? 43 : 35; }

  std::string cell(const std::string& name, const KernelTime* time) const {
    if (time == nullptr) return std::string(is_base(name) ? 10 : width(), ' ');
    if (name == "memcpy") return fmt::format("{:>10.2f}", time->bytes_per_second / 1e9);
    std::string out = fmt::format("{:>10.1f}", time->weights_per_second / 1e6);
    if (is_base(name)) return out;
    out += fmt::format("{:>7.2f}{:>8}", time->bytes_per_second / 1e9,
                       number(has_ggml_ ? time->of_ggml : time->of_reference, 2));
    if (decodes_) out += fmt::format("{:>8}", number(time->of_memcpy, 3));
    return out + fmt::format("{:>10}", verdict(*time));
  }

  Rows rows_;
  Names names_;
  bool decodes_;
  bool has_ggml_ = false;
};

// Returns a line such as "x86-64-v4, L2: 40 of 52 targets met".
std::string summary(const Rows& rows, const std::string& name, const std::string& place) {
  int targets = 0, met = 0, different = 0;
  for (const KernelRow& row : rows) {
    const KernelTime* time = row.place == place ? find(row, name) : nullptr;
    if (time == nullptr) continue;
    targets += time->target ? 1 : 0;
    met += time->met ? 1 : 0;
    different += time->same_bytes ? 0 : 1;
  }
  std::string out;
  if (targets > 0) out += fmt::format("{}, {}: {} of {} targets met\n", name, place, met, targets);
  if (different > 0) out += fmt::format("{}, {}: {} kernels with OTHER BYTES\n", name, place, different);
  return out;
}

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

namespace json = boost::json;

json::object object(const KernelTime& t) {
  json::object out{{"name", t.name},
                   {"weights_per_second", t.weights_per_second},
                   {"bytes_per_second", t.bytes_per_second},
                   {"of_reference", t.of_reference},
                   {"of_ggml", t.of_ggml},
                   {"of_memcpy", t.of_memcpy},
                   {"same_bytes", t.same_bytes}};
  if (t.target) out["target"] = *t.target, out["met"] = t.met;
  return out;
}

template <class Item>
json::array list(const std::vector<Item>& items);

json::object object(const KernelRow& row) {
  return {{"type", row.type}, {"operation", row.operation}, {"place", row.place}, {"times", list(row.times)}};
}

json::object object(const ProgramTime& t) {
  return {{"seconds", t.seconds}, {"cpu_seconds", t.cpu_seconds}, {"peak_mebibytes", t.peak_mebibytes}};
}

json::object object(const FileTime& t) {
  return {{"type", t.type},   {"ggufmill", object(t.ggufmill)}, {"llama_quantize", object(t.llama_quantize)},
          {"ratio", t.ratio}, {"cpu_ratio", t.cpu_ratio},       {"same_bytes", t.same_bytes}};
}

template <class Item>
json::array list(const std::vector<Item>& items) {
  json::array out;
  for (const Item& item : items) out.push_back(object(item));
  return out;
}

}  // namespace

std::string kernel_tables(const Rows& rows) {
  std::string out;
  for (const bool decodes : {false, true}) {
    Rows some;
    std::ranges::copy_if(rows, std::back_inserter(some),
                         [&](const KernelRow& row) { return is_decode(row) == decodes; });
    if (!some.empty()) out += Table(some, decodes).text() + "\n";
  }
  for (const std::string& name : names_of(rows))
    for (const char* place : {"L2", "memory"}) out += summary(rows, name, place);
  return out;
}

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

std::string to_json(const Report& report) {
  return json::serialize(json::object{{"kernels", list(report.kernels)}, {"files", list(report.files)}}) + "\n";
}

std::string speed_table(const std::vector<KernelRow>& rows) {
  struct Speeds {
    double decode = 0, encode = 0;
  };
  std::map<std::pair<std::string, std::string>, Speeds> all;  // by type and ISA
  for (const KernelRow& row : rows)
    for (const KernelTime& time : row.times) {
      if (time.name == "ggml" || time.name == "memcpy" || row.operation.starts_with("search")) continue;
      Speeds& speeds = all[{row.type, time.name}];
      double& speed = row.operation == "decode" ? speeds.decode : speeds.encode;
      if (row.operation == "decode" || speed == 0 || row.operation == "encode") speed = time.weights_per_second / 1e6;
    }
  const auto number = [](double speed) { return speed > 0 ? fmt::format("{:.4g}", speed) : std::string("-"); };
  std::string text = "# type\tISA\tdecode\tencode: millions of weights a second of one thread\n";
  for (const auto& [key, speeds] : all)
    text += fmt::format("{}\t{}\t{}\t{}\n", key.first, key.second, number(speeds.decode), number(speeds.encode));
  return text;
}

}  // namespace ggufmill::bench
