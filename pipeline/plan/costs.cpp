#include "pipeline/plan/costs.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string_view>

#include "pipeline/plan/slabs.h"

namespace ggufmill {

extern const std::string_view kKernelSpeeds;  // kernel_speeds.tsv

namespace {

constexpr double kUnknownSpeed = 100;  // millions of weights per second, for types not in the table
// Fixed cost of starting a unit, independent of its size.
constexpr double kStepSeconds = 20e-6;

double speed_of(std::string_view type, std::string_view isa, bool encode) {
  double best = 0, own = 0;
  for (const KernelSpeed& one : kernel_speeds()) {
    if (one.type != type) continue;
    const double speed = encode ? one.encode : one.decode;
    best = std::max(best, speed);
    if (one.isa == isa) own = speed;
  }
  return 1e6 * (own > 0 ? own : best > 0 ? best : kUnknownSpeed);
}

// Returns the thread seconds needed for one value of the step.
double seconds_per_value(const Step& step, std::string_view isa) {
  double seconds = 0;
  bool decodes = false;
  for (const Encoding& encoding : step.encodings) {
    if (!converts(work_of(step, encoding))) continue;
    decodes = true;
    seconds += 1 / speed_of(encoding.type->name, isa, true);
  }
  return decodes ? seconds + 1 / speed_of(step.expression->type->name, isa, false) : 0;
}

}  // namespace

const std::vector<KernelSpeed>& kernel_speeds() {
  static const std::vector<KernelSpeed> speeds = [] {
    std::vector<KernelSpeed> read;
    std::istringstream lines{std::string(kKernelSpeeds)};
    lines.exceptions(std::ios::badbit);  // lets std::bad_alloc through
    for (std::string line; std::getline(lines, line);) {
      KernelSpeed speed;
      std::string decode, encode;  // "-": no kernel
      std::istringstream words(line);
      words.exceptions(std::ios::badbit);
      if (line.starts_with('#') || !(words >> speed.type >> speed.isa >> decode >> encode)) continue;
      speed.decode = std::strtod(decode.c_str(), nullptr);
      speed.encode = std::strtod(encode.c_str(), nullptr);
      read.push_back(std::move(speed));
    }
    return read;
  }();
  return speeds;
}

std::vector<double> unit_costs(const Plan& plan, const ImaginedMachine& machine) {
  std::vector<double> costs;
  std::size_t step_number = std::numeric_limits<std::size_t>::max();
  double per_value = 0, written_per_row = 0;
  for (const Unit& unit : plan.units) {
    const Step& step = plan.steps[unit.step];
    if (unit.step != step_number) {
      step_number = unit.step;
      per_value = seconds_per_value(step, machine.isa);
      written_per_row = 0;
      for (const Encoding& encoding : step.encodings)
        written_per_row += static_cast<double>(row_bytes(*encoding.type, step.expression->shape)) *
                           static_cast<double>(encoding.places.size());
    }
    const double rows = static_cast<double>(unit.rows);
    const double computing = rows * static_cast<double>(step.expression->shape.columns()) * per_value / machine.threads;
    const double reading = rows * static_cast<double>(step.expression->row_bytes()) / machine.bytes_per_second;
    const double writing = rows * written_per_row / machine.bytes_per_second;
    costs.push_back(kStepSeconds + std::max({computing, reading, writing}));
  }
  return costs;
}

}  // namespace ggufmill
