#include "pipeline/cluster/measured.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <map>

#include "pipeline/api/reports.h"
#include "pipeline/core/record.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::size_t kDigits = 16;  // hexadecimal digits of one number

std::string path_of(const ClusterJob& job, std::size_t part) { return job.part_file(part, "measured.json"); }

// Serializes sums; returns an empty string if the encoding is lossless and therefore has none.
std::string text_of(const DifferenceSums* sums) {
  std::string text;
  if (!sums) return text;
  for (const std::uint64_t number : sums->numbers()) text += fmt::format("{:016x}", number);
  return text;
}

std::optional<DifferenceSums> sums_of(const std::string& text) {
  DifferenceSums::Numbers numbers;
  if (text.empty()) return {};
  if (text.size() != numbers.size() * kDigits) throw InvalidJson{"'sums' is too short"};
  const char* from = text.data();
  for (std::uint64_t& number : numbers) {
    const auto read = std::from_chars(from, from + kDigits, number, 16);
    if (read.ec != std::errc() || read.ptr != from + kDigits)
      throw InvalidJson{"'sums' has values that are not numbers"};
    from += kDigits;
  }
  DifferenceSums sums;
  if (!sums.set(numbers)) throw InvalidJson{"'sums' is not valid"};
  return sums;
}

// The measurements of one encoding.
struct EncodingMeasure {
  std::uint64_t nanoseconds = 0;
  std::optional<DifferenceSums> sums;
};
using StepMeasures = std::map<std::size_t, std::vector<EncodingMeasure>>;

// The measurements of a step, as they are written.
struct StepMeasure {
  std::uint64_t step = 0;
  std::vector<EncodingMeasure> encodings;
};

const RecordForm<StepMeasure>& step_form() {
  const RecordKind<std::optional<DifferenceSums>> sums{
      [](const std::optional<DifferenceSums>& it) { return json::value(text_of(it ? &*it : nullptr)); },
      [](const json::value& object, std::string_view name) { return sums_of(needed_text(object, name)); }};
  static const RecordForm<EncodingMeasure> encoding{member("nanoseconds", &EncodingMeasure::nanoseconds),
                                                    member("sums", &EncodingMeasure::sums, sums)};
  static const RecordForm<StepMeasure> form{member("step", &StepMeasure::step),
                                            member("encodings", &StepMeasure::encodings, encoding.list())};
  return form;
}

StepMeasures read_measured(const ClusterJob& job, std::size_t part, const Plan& plan) try {
  const auto read = read_json(path_of(job, part));
  StepMeasures steps;
  if (!read || json_string(read.value(), "job") != job.key()) return steps;
  if (needed_number(read.value(), "part") != part) return steps;
  for (const json::value& one : needed_list(read.value(), "steps")) {
    StepMeasure read_step = step_form().read(one);
    if (read_step.step >= plan.steps.size() ||
        read_step.encodings.size() != plan.steps[read_step.step].encodings.size())
      return {};
    steps[read_step.step] = std::move(read_step.encodings);
  }
  return steps;
} catch (const InvalidJson&) {
  return {};
}

// Returns the steps of a range of units in ascending order, without duplicates.
std::vector<std::size_t> steps_of(const Plan& plan, UnitRange range) {
  std::vector<std::size_t> steps;
  for (std::size_t i = range.first; i < range.last; ++i)
    if (steps.empty() || steps.back() != plan.units[i].step) steps.push_back(plan.units[i].step);
  return steps;
}

}  // namespace

Status write_measured(const ClusterJob& job, std::size_t part, const Plan& plan, const RunReport& run) {
  if (run.steps.empty()) return ok();
  std::vector<StepMeasure> measures;
  for (const std::size_t step : steps_of(plan, job.range(part))) {
    if (!run.steps_kept.empty() && run.steps_kept[step]) continue;
    StepMeasure& measure = measures.emplace_back(StepMeasure{step, {}});
    for (const TargetResult& encoding : run.steps[step].encodings) {
      EncodingMeasure& one = measure.encodings.emplace_back();
      one.nanoseconds = static_cast<std::uint64_t>(encoding.seconds * 1e9);
      if (encoding.partial) one.sums = *encoding.partial;
    }
  }
  const json::object object{{"job", job.key()}, {"part", part}, {"steps", step_form().list().write(measures)}};
  return write_own_text(path_of(job, part), json::serialize(object) + "\n", true);
}

void join_measured(const ClusterJob& job, const Plan& plan, RunReport& run) {
  std::vector<std::vector<EncodingMeasure>> all(plan.steps.size());
  for (std::size_t step = 0; step < all.size(); ++step) all[step].resize(plan.steps[step].encodings.size());
  run.steps_kept.assign(all.size(), false);
  for (std::size_t part = 0; part < job.parts(); ++part) {
    const StepMeasures measured = read_measured(job, part, plan);
    for (const std::size_t step : steps_of(plan, job.range(part))) {
      const auto found = measured.find(step);
      if (found == measured.end()) {
        run.steps_kept[step] = true;
        continue;
      }
      for (std::size_t i = 0; i < all[step].size(); ++i) {
        EncodingMeasure& sum = all[step][i];
        const EncodingMeasure& one = found->second[i];
        sum.nanoseconds += one.nanoseconds;
        if (one.sums && !sum.sums) sum.sums.emplace();
        if (one.sums) sum.sums->add(*one.sums);
      }
    }
  }
  for (const std::vector<EncodingMeasure>& step : all) {
    StepResult& result = run.steps.emplace_back();
    for (const EncodingMeasure& one : step) {
      TargetResult& target = result.encodings.emplace_back();
      target.seconds = static_cast<double>(one.nanoseconds) / 1e9;
      if (one.sums) target.error = one.sums->rounded();
    }
  }
}

}  // namespace ggufmill
