#include <boost/json.hpp>

#include "tests/bench/report.h"

namespace ggufmill::bench {
namespace {

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

std::string to_json(const Report& report) {
  return json::serialize(json::object{{"kernels", list(report.kernels)}, {"files", list(report.files)}}) + "\n";
}

}  // namespace ggufmill::bench
