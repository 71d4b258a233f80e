#include "pipeline/cluster/cluster_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <filesystem>

#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill cluster job";
constexpr int kVersion = 1;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{4} << 30;  // of a written plan

// A member that has to be there and of its kind; else Boost.JSON throws.
std::uint64_t number_of(const json::object& object, std::string_view name) {
  return object.at(name).to_number<std::uint64_t>();
}
std::string text_of(const json::object& object, std::string_view name) {
  return std::string(object.at(name).as_string());
}
std::vector<std::string> texts_of(const json::object& object, std::string_view name) {
  std::vector<std::string> texts;
  for (const json::value& text : object.at(name).as_array()) texts.emplace_back(text.as_string());
  return texts;
}

json::object options_json(const ClusterOptions& options) {
  return {{"engine", options.engine == ClusterOptions::Engine::kSlurm ? "slurm" : "none"},
          {"partition", options.partition},
          {"account", options.account},
          {"time", options.time},
          {"constraint", options.constraint},
          {"cpus", options.cpus},
          {"memory", options.memory},
          {"max_parallel", options.max_parallel},
          {"options", json::value_from(options.options)}};
}

ClusterOptions options_of(const json::object& object) {
  ClusterOptions options;
  options.engine =
      text_of(object, "engine") == "slurm" ? ClusterOptions::Engine::kSlurm : ClusterOptions::Engine::kNone;
  options.partition = text_of(object, "partition");
  options.account = text_of(object, "account");
  options.time = text_of(object, "time");
  options.constraint = text_of(object, "constraint");
  options.cpus = static_cast<unsigned>(number_of(object, "cpus"));
  options.memory = number_of(object, "memory");
  options.max_parallel = static_cast<unsigned>(number_of(object, "max_parallel"));
  options.options = texts_of(object, "options");
  return options;
}

json::object limits_json(const Limits& limits) {
  return {{"memory", limits.memory_is_given ? json::value(limits.memory) : json::value()},
          {"threads", limits.threads},
          {"nice", limits.nice},
          {"io", limits.io ? json::value(io_mode_names()[static_cast<std::size_t>(*limits.io)]) : json::value()}};
}

Limits limits_of(const json::object& object) {
  Limits limits;
  if (const json::value& memory = object.at("memory"); !memory.is_null()) {
    limits.memory = memory.to_number<std::uint64_t>();
    limits.memory_is_given = true;
  }
  limits.threads = static_cast<unsigned>(number_of(object, "threads"));
  limits.nice = static_cast<unsigned>(number_of(object, "nice"));
  if (const json::value& io = object.at("io"); !io.is_null()) limits.io = io_mode_named(std::string(io.as_string()));
  return limits;
}

ClusterJob job_of(const json::object& object, const std::string& folder) {
  ClusterJob job;
  job.folder = job.array_folder = folder;
  job.working_folder = text_of(object, "working_folder");
  job.name = text_of(object, "name");
  job.identity = text_of(object, "identity");
  job.id = text_of(object, "id");
  job.overwrite = object.at("overwrite").as_bool();
  for (const json::value& cut : object.at("cuts").as_array()) job.cuts.push_back(cut.to_number<std::size_t>());
  for (const json::value& cost : object.at("costs").as_array()) job.costs.push_back(cost.to_number<double>());
  job.limits = limits_of(object.at("limits").as_object());
  job.kernel_directories = texts_of(object, "kernel_directories");
  job.isa = text_of(object, "isa");
  job.options = options_of(object.at("options").as_object());
  return job;
}

// A marker's object, where it is one of this job.
std::optional<json::object> read_marker(const ClusterJob& job, const std::string& path) {
  auto read = read_json(path);
  if (!read || json_string(read.value(), "job") != job.key()) return {};
  return std::move(read.value().as_object());
}

Status write_marker(const ClusterJob& job, const std::string& path, json::object marker) {
  marker["job"] = job.key();
  return write_text(path, json::serialize(marker) + "\n", true);
}

std::string hexadecimal(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::optional<std::uint64_t> from_hexadecimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return number;
}

std::optional<DoneMarker> done_of(const ClusterJob& job, std::size_t part, const json::object& object) {
  DoneMarker marker;
  const UnitRange range = job.range(part);
  const json::array& units = object.at("checksums").as_array();
  if (number_of(object, "part") != part || number_of(object, "first") != range.first ||
      units.size() != range.last - range.first)
    return {};
  for (const json::value& unit : units) {
    JournalText::Record& record = marker.units.emplace_back();
    record.unit = static_cast<std::uint32_t>(range.first + marker.units.size() - 1);
    for (const json::value& sum : unit.as_array()) {
      const auto number = from_hexadecimal(sum.as_string());
      if (!number) return {};
      record.checksums.push_back(*number);
    }
  }
  marker.host = text_of(object, "host");
  marker.isa = text_of(object, "isa");
  marker.seconds = object.at("seconds").to_number<double>();
  marker.bytes_read = number_of(object, "bytes_read");
  marker.bytes_written = number_of(object, "bytes_written");
  marker.units_kept = number_of(object, "units_kept");
  return marker;
}

constexpr std::string_view kStates[] = {"running", "failed", "stopped"};

}  // namespace

std::string ClusterJob::part_file(std::size_t part, const std::string& ending) const {
  return fmt::format("{}/parts/{}.{}", folder, part, ending);
}

Status write_job(const ClusterJob& job, const Plan& plan) {
  const json::object object{{"format", kFormat},
                            {"version", kVersion},
                            {"ggufmill", GGUFMILL_VERSION},
                            {"working_folder", job.working_folder},
                            {"name", job.name},
                            {"identity", job.identity},
                            {"id", job.id},
                            {"overwrite", job.overwrite},
                            {"cuts", json::value_from(job.cuts)},
                            {"costs", json::value_from(job.costs)},
                            {"limits", limits_json(job.limits)},
                            {"kernel_directories", json::value_from(job.kernel_directories)},
                            {"isa", job.isa},
                            {"options", options_json(job.options)}};
  BOOST_OUTCOME_TRY(write_text(job.file("plan.json"), write_plan(plan) + "\n", false));
  return write_text(job.file("job.json"), json::serialize(object) + "\n", false);
}

bool is_job_folder(const std::string& path) { return is_file(fs::path(path) / "job.json"); }

Result<ClusterJob> load_job_folder(const std::string& folder) try {
  if (!is_job_folder(folder))
    return usage_error(fmt::format("{} is not the folder of a cluster job", quoted_name(folder)),
                       "`ggufmill submit JOB.yaml` makes one");
  const std::string path = folder + "/job.json";
  BOOST_OUTCOME_TRY(const json::value read, read_json(path));
  const json::object& object = read.as_object();
  if (text_of(object, "format") != kFormat || object.at("version").to_number<int>() != kVersion)
    return input_error(path, "it is not a cluster job of this version");
  if (text_of(object, "ggufmill") != GGUFMILL_VERSION)
    return input_error(
        path,
        fmt::format("the job was made by ggufmill {}, and this is {}", text_of(object, "ggufmill"), GGUFMILL_VERSION),
        "use one version on all nodes, or submit the job again");
  ClusterJob job = job_of(object, fs::canonical(folder).string());
  if (job.cuts.size() < 2 || job.costs.size() != job.parts() || !std::ranges::is_sorted(job.cuts) ||
      job.cuts.front() != 0)
    return input_error(path, "its parts are not sound", "submit the job again");
  return job;
} catch (const std::exception& error) {
  return input_error(folder + "/job.json", fmt::format("it is not a sound job: {}", error.what()), "submit it again");
}

Result<Plan> load_plan(const ClusterJob& job, const Types& types) {
  const std::string path = job.file("plan.json");
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMostTextBytes));
  BOOST_OUTCOME_TRY(Plan plan, read_plan(text, path, types));
  if (identity_of(plan) != job.identity || job.cuts.back() != plan.units.size())
    return input_error(path, "it is not the plan that job.json is of", "submit the job again");
  plan.limits = job.limits;
  return plan;
}

Status write_done(const ClusterJob& job, std::size_t part, const DoneMarker& marker) {
  json::array units;
  for (const JournalText::Record& record : marker.units) {
    json::array sums;
    for (const std::uint64_t sum : record.checksums) sums.emplace_back(hexadecimal(sum));
    units.push_back(std::move(sums));
  }
  return write_marker(job, job.part_file(part, "done.json"),
                      {{"part", part},
                       {"first", job.range(part).first},
                       {"host", marker.host},
                       {"isa", marker.isa},
                       {"seconds", marker.seconds},
                       {"bytes_read", marker.bytes_read},
                       {"bytes_written", marker.bytes_written},
                       {"units_kept", marker.units_kept},
                       {"checksums", std::move(units)}});
}

std::optional<DoneMarker> read_done(const ClusterJob& job, std::size_t part) try {
  const auto object = read_marker(job, job.part_file(part, "done.json"));
  return object ? done_of(job, part, *object) : std::nullopt;
} catch (const std::exception&) {  // a member that lacks
  return {};
}

std::vector<bool> parts_done(const ClusterJob& job) {
  std::vector<bool> done(job.parts());
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(job.file("parts"), error)) {
    const std::string name = entry.path().filename().string();
    std::size_t part = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), part);
    if (read.ec == std::errc() && part < done.size() && std::string_view(read.ptr) == ".done.json") done[part] = true;
  }
  return done;
}

Status undo(const ClusterJob& job, std::size_t part) {
  const std::string path = job.part_file(part, "done.json");
  if (retry([&] { return system_calls().unlinkat(AT_FDCWD, path.c_str(), 0); }) < 0 && errno != ENOENT)
    return io_error(path, "remove the marker of a part", errno);
  return ok();
}

Status write_beat(const ClusterJob& job, std::size_t part, const Beat& beat) {
  return write_marker(job, job.part_file(part, "beat.json"),
                      {{"state", kStates[static_cast<std::size_t>(beat.state)]},
                       {"attempt", beat.attempt},
                       {"host", beat.host},
                       {"count", beat.count},
                       {"units", beat.units},
                       {"bytes_written", beat.bytes_written},
                       {"exit_code", beat.exit_code},
                       {"error", beat.error}});
}

std::optional<Beat> read_beat(const ClusterJob& job, std::size_t part) try {
  const auto object = read_marker(job, job.part_file(part, "beat.json"));
  if (!object) return {};
  Beat beat;
  const auto state = std::ranges::find(kStates, text_of(*object, "state"));
  if (state == std::end(kStates)) return {};
  beat.state = static_cast<Beat::State>(state - std::begin(kStates));
  beat.attempt = text_of(*object, "attempt");
  beat.host = text_of(*object, "host");
  beat.count = number_of(*object, "count");
  beat.units = number_of(*object, "units");
  beat.bytes_written = number_of(*object, "bytes_written");
  beat.exit_code = object->at("exit_code").to_number<int>();
  beat.error = text_of(*object, "error");
  return beat;
} catch (const std::exception&) {  // a member that lacks
  return {};
}

void remove_beat(const ClusterJob& job, std::size_t part) {
  const std::string path = job.part_file(part, "beat.json");
  retry([&] { return system_calls().unlinkat(AT_FDCWD, path.c_str(), 0); });
}

Status write_seal(const ClusterJob& job, const SealMarker& marker) {
  return write_marker(job, job.file("seal.json"), {{"inodes", json::value_from(marker.inodes)}});
}

std::optional<SealMarker> read_seal(const ClusterJob& job) try {
  const auto object = read_marker(job, job.file("seal.json"));
  if (!object) return {};
  SealMarker marker;
  for (const json::value& inode : object->at("inodes").as_array())
    marker.inodes.push_back(inode.to_number<std::uint64_t>());
  return marker;
} catch (const std::exception&) {  // a member that lacks
  return {};
}

std::vector<bool> files_named(const Plan& plan, const SealMarker& marker) {
  const std::vector<StoredFile> files = stored_files(plan);
  std::vector<bool> named(files.size());
  if (marker.inodes.size() != files.size()) return named;
  for (std::size_t i = 0; i < files.size(); ++i) {
    struct stat info {};
    const auto call = [&] {
      return system_calls().fstatat(AT_FDCWD, files[i].path.c_str(), &info, AT_SYMLINK_NOFOLLOW);
    };
    named[i] = retry(call) == 0 && info.st_ino == marker.inodes[i] &&
               static_cast<std::uint64_t>(info.st_size) == files[i].bytes;
  }
  return named;
}

ExitCode exit_code_of(std::uint64_t number) {
  const bool is_one =
      number >= static_cast<std::uint64_t>(ExitCode::kInternal) && number <= static_cast<std::uint64_t>(ExitCode::kIo);
  return is_one || number == static_cast<std::uint64_t>(ExitCode::kTransient) ? static_cast<ExitCode>(number)
                                                                              : ExitCode::kInternal;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace ggufmill
