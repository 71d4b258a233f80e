#include "stages/quantize/measurement.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

namespace ggufmill {

std::string fuzz_measurement(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto measurement = read_measurement(file.path());
  if (!measurement) return file.problem_of(measurement.error());
  // A parsed measurement must survive writing and reading.
  const std::string text = write_measurement(measurement.value());
  const MemoryFile again(text, text.size());
  if (!again.good()) return "no memory file";
  const auto back = read_measurement(again.path());
  if (!back) return "what is written cannot be read: " + render(back.error());
  return write_measurement(back.value()) == text ? "" : "a measurement does not come back the same";
}

std::vector<std::string> measurement_seeds() {
  Measurement measurement;
  measurement.ggufmill = "0.1.0";
  const Shape shape{2, {256, 8, 1, 1}};
  measurement.tensors.push_back({"a.weight", "0123", shape, 10, 20, true, {{"Q2_K", 672, 1, 2}, {"Q8_0", 2176, 0, 0}}});
  measurement.tensors.push_back({"b.weight", "4567", shape, 10, 0, false, {{"Q2_K", 672, 1.5, 0}}});
  return {write_measurement(measurement), R"({"format": "ggufmill measurement", "version": 1, "tensors": [{}]})",
          R"({"format": "ggufmill measurement", "version": 3})", "{}", ""};
}

}  // namespace ggufmill
