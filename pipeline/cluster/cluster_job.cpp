#include "pipeline/cluster/cluster_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <new>
#include <system_error>

#include "pipeline/api/reports.h"
#include "pipeline/config/job.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/program.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/journal/output_claim.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kJobFormat = "ggufmill cluster job";
constexpr int kJobVersion = 1;
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{4} << 30;  // size limit of a serialized plan

// Readers of required members of a given type, like needed_text(); they throw InvalidJson if a value is missing or of
// another type.
unsigned small_number(const json::value& value, std::string_view name) {
  const std::uint64_t number = needed_number(value, name);
  if (number > std::numeric_limits<unsigned>::max()) throw InvalidJson{fmt::format("'{}' is too large", name)};
  return static_cast<unsigned>(number);
}
double measure_of(const json::value& number, std::string_view name) {
  const double read = number.is_double()   ? number.get_double()
                      : number.is_int64()  ? static_cast<double>(number.get_int64())
                      : number.is_uint64() ? static_cast<double>(number.get_uint64())
                                           : -1;
  if (!(read >= 0) || std::isinf(read)) throw InvalidJson{fmt::format("'{}' is not a non-negative number", name)};
  return read;
}
std::vector<std::size_t> numbers_of(const json::value& value, std::string_view name) {
  std::vector<std::size_t> numbers;
  for (const json::value& number : needed_list(value, name)) {
    if (!number.is_int64() && !number.is_uint64())
      throw InvalidJson{fmt::format("an element of '{}' is not an integer", name)};
    if (number.is_int64() && number.get_int64() < 0)
      throw InvalidJson{fmt::format("an element of '{}' is negative", name)};
    numbers.push_back(number.to_number<std::size_t>());
  }
  return numbers;
}
std::vector<std::string> needed_texts(const json::value& value, std::string_view name) {
  std::vector<std::string> texts;
  for (const json::value& text : needed_list(value, name)) {
    if (!text.is_string()) throw InvalidJson{fmt::format("an element of '{}' is not a string", name)};
    texts.emplace_back(text.get_string());
  }
  return texts;
}

// A text that becomes part of the names of files.
std::string needed_word(const json::value& value, std::string_view name) {
  std::string word = needed_text(value, name);
  const auto is_usual = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
  };
  if (!word.empty() && std::ranges::all_of(word, is_usual)) return word;
  throw InvalidJson{fmt::format("'{}' is {}, not letters and digits", name, quoted_name(word))};
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

ClusterOptions options_of(const json::value& value) {
  ClusterOptions options;
  const std::string engine = needed_text(value, "engine");
  if (engine != "slurm" && engine != "none") throw InvalidJson{"'engine' is neither slurm nor none"};
  options.engine = engine == "slurm" ? ClusterOptions::Engine::kSlurm : ClusterOptions::Engine::kNone;
  options.partition = needed_text(value, "partition");
  options.account = needed_text(value, "account");
  options.time = needed_text(value, "time");
  options.constraint = needed_text(value, "constraint");
  options.cpus = small_number(value, "cpus");
  options.memory = needed_number(value, "memory");
  options.max_parallel = small_number(value, "max_parallel");
  options.options = needed_texts(value, "options");
  const auto check = [](std::string_view name, const std::string& text, std::string (*wrong)(std::string_view)) {
    if (const std::string why = wrong(text); !why.empty())
      throw InvalidJson{fmt::format("'{}' is {}: {}", name, quoted_name(text), why)};
  };
  if (!options.partition.empty()) check("partition", options.partition, wrong_engine_argument);
  if (!options.account.empty()) check("account", options.account, wrong_engine_argument);
  if (!options.constraint.empty()) check("constraint", options.constraint, wrong_engine_argument);
  if (!options.time.empty()) check("time", options.time, wrong_engine_time);
  for (const std::string& option : options.options) check("options", option, wrong_engine_option);
  return options;
}

json::object limits_json(const Limits& limits) {
  return {{"memory", limits.memory ? json::value(*limits.memory) : json::value()},
          {"threads", limits.threads},
          {"nice", limits.nice},
          {"spool", {{"folder", limits.spool.folder}, {"size", limits.spool.size}}},
          {"io", limits.io ? json::value(io_mode_names()[static_cast<std::size_t>(*limits.io)]) : json::value()}};
}

Limits limits_of(const json::value& value) {
  Limits limits;
  if (!needed(value, "memory").is_null()) limits.memory = needed_number(value, "memory");
  limits.threads = small_number(value, "threads");
  limits.nice = small_number(value, "nice");
  const json::value& spool = needed(value, "spool");
  limits.spool = {needed_text(spool, "folder"), needed_number(spool, "size")};
  if (needed(value, "io").is_null()) return limits;
  limits.io = io_mode_named(needed_text(value, "io"));
  if (!limits.io) throw InvalidJson{"'io' is not a valid I/O mode"};
  return limits;
}

ClusterJob job_of(const json::value& value, const std::string& folder) {
  ClusterJob job;
  job.folder = job.array_folder = folder;
  job.working_folder = needed_text(value, "working_folder");
  job.name = needed_text(value, "name");
  job.identity = needed_word(value, "identity");
  job.id = needed_word(value, "id");
  job.overwrite = json_flag(value, "overwrite");
  job.cuts = numbers_of(value, "cuts");
  for (const json::value& cost : needed_list(value, "costs")) job.costs.push_back(measure_of(cost, "costs"));
  job.limits = limits_of(needed(value, "limits"));
  job.kernel_directories = needed_texts(value, "kernel_directories");
  job.isa = needed_text(value, "isa");
  job.options = options_of(needed(value, "options"));
  if (job.cuts.size() < 2 || job.costs.size() != job.parts() || !std::ranges::is_sorted(job.cuts) ||
      job.cuts.front() != 0)
    throw InvalidJson{"its parts are not valid"};
  return job;
}

// Reads a marker; returns nullopt if it cannot be read or belongs to another job.
std::optional<json::value> read_marker(const ClusterJob& job, const std::string& path) {
  auto read = read_json(path);
  if (!read || json_string(read.value(), "job") != job.key()) return {};
  return std::move(read).value();
}

Status write_marker(const ClusterJob& job, const std::string& path, json::object marker) {
  marker["job"] = job.key();
  return write_own_text(path, json::serialize(marker) + "\n", true);
}

std::string hexadecimal(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::optional<std::uint64_t> from_hexadecimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return number;
}

std::optional<DoneMarker> done_of(const ClusterJob& job, std::size_t part, const json::value& value) {
  DoneMarker marker;
  const UnitRange range = job.range(part);
  const json::array& units = needed_list(value, "checksums");
  if (needed_number(value, "part") != part || needed_number(value, "first") != range.first ||
      units.size() != range.last - range.first)
    return {};
  for (const json::value& unit : units) {
    JournalText::Record& record = marker.units.emplace_back();
    record.unit = static_cast<std::uint32_t>(range.first + marker.units.size() - 1);
    if (!unit.is_array()) return {};
    for (const json::value& sum : unit.get_array()) {
      const auto number = sum.is_string() ? from_hexadecimal(sum.get_string()) : std::nullopt;
      if (!number) return {};
      record.checksums.push_back(*number);
    }
  }
  marker.host = needed_text(value, "host");
  marker.isa = needed_text(value, "isa");
  marker.seconds = measure_of(needed(value, "seconds"), "seconds");
  marker.bytes_read = needed_number(value, "bytes_read");
  marker.bytes_written = needed_number(value, "bytes_written");
  marker.units_kept = needed_number(value, "units_kept");
  marker.inodes = numbers_of(value, "inodes");
  for (const json::value& chunk : needed_list(value, "chunks"))
    marker.chunks.push_back({needed_number(chunk, "file"), needed_number(chunk, "number"), needed_text(chunk, "tag")});
  return marker;
}

constexpr std::string_view kStates[] = {"running", "failed", "stopped"};

}  // namespace

std::string ClusterJob::part_file(std::size_t part, const std::string& ending) const {
  return fmt::format("{}/parts/{}.{}", folder, part, ending);
}

StoreOptions store_options_of(const ClusterJob& job, const Plan& plan) {
  StoreOptions options = store_options(plan);
  options.overwrite = job.overwrite;
  options.identity = job.key();
  options.threads = threads_for(plan.limits.threads);
  options.writes.clear();
  options.records = job.file("uploads");
  return options;
}

Status write_job(const ClusterJob& job, const Plan& plan) {
  const json::object object{{"format", kJobFormat},
                            {"version", kJobVersion},
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
  BOOST_OUTCOME_TRY(write_own_text(job.file("plan.json"), write_plan(plan) + "\n", false));
  return write_own_text(job.file(kJobFile), json::serialize(object) + "\n", false);
}

Status check_trusted(const std::string& folder) {
  // Files in the folders among them are not examined: nobody else can put one there, and those that ggufmill reads are
  // created with kOwnMode. Every part of a job would otherwise examine the files of all parts.
  constexpr const char* kNames[] = {".",       kJobFile,    "plan.json", "matrix.json", "engine.json", "part.sh",
                                    "seal.sh", "seal.json", "parts",     "log",         "uploads"};
  for (const std::string_view name : kNames) {
    const std::string path = name == "." ? folder : fmt::format("{}/{}", folder, name);
    FileStatus info;
    if (!get_status(kCurrentFolder, path, Links::kNoFollow, info)) continue;
    const std::string why = why_untrusted(path);
    if (why.empty()) continue;
    return Error{ExitCode::kUsage, path,
                 fmt::format("the {} of a cluster job is not trusted: {}", name == "." ? "folder" : "record", why),
                 "it decides which programs and kernel modules run for you",
                 fmt::format("if all of it is yours, take the permission to write from others (chmod -R go-w {}, or "
                             "chmod go-w for a folder above it); otherwise run this as the user whose job it is, or "
                             "submit the job again, to a folder of your own",
                             shell_word(folder))};
  }
  return ok();
}

bool is_job_folder(const std::string& path) { return is_file(fs::path(path) / kJobFile); }

Result<ClusterJob> load_job_folder(const std::string& folder) {
  if (!is_job_folder(folder))
    return usage_error(fmt::format("{} is not the folder of a cluster job", quoted_name(folder)),
                       "`ggufmill submit JOB.yaml` creates one");
  BOOST_OUTCOME_TRY(check_trusted(folder));
  const std::string path = folder + "/" + kJobFile;
  try {
    BOOST_OUTCOME_TRY(const json::value read, read_json(path));
    if (needed_text(read, "format") != kJobFormat || needed_number(read, "version") != kJobVersion)
      return input_error(path, "not a cluster job of this version");
    if (const std::string version = needed_text(read, "ggufmill"); version != GGUFMILL_VERSION)
      return input_error(
          path,
          fmt::format("the job was created by ggufmill {}, but this is {}", quoted_name(version, 20), GGUFMILL_VERSION),
          "use the same version on all nodes, or submit the job again");
    return job_of(read, fs::canonical(folder).string());
  } catch (const InvalidJson& error) {
    return input_error(path, "not a valid job: " + error.what, "submit it again");
  } catch (const fs::filesystem_error& error) {
    if (error.code() == std::errc::not_enough_memory) throw std::bad_alloc();
    return input_error(path, fmt::format("cannot read it: {}", error.what()));
  }
}

Result<Plan> load_plan(const ClusterJob& job, const Types& types) {
  const std::string path = job.file("plan.json");
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxTextBytes));
  BOOST_OUTCOME_TRY(Plan plan, read_plan(text, path, types));
  if (identity_of(plan) != job.identity || job.cuts.back() != plan.units.size())
    return input_error(path, "the plan does not belong to job.json", "submit the job again");
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
  json::array chunks;
  for (const UploadedChunk& chunk : marker.chunks)
    chunks.push_back({{"file", chunk.file}, {"number", chunk.number}, {"tag", chunk.tag}});
  return write_marker(job, job.part_file(part, "done.json"),
                      {{"part", part},
                       {"first", job.range(part).first},
                       {"host", marker.host},
                       {"isa", marker.isa},
                       {"seconds", marker.seconds},
                       {"bytes_read", marker.bytes_read},
                       {"bytes_written", marker.bytes_written},
                       {"units_kept", marker.units_kept},
                       {"inodes", json::value_from(marker.inodes)},
                       {"chunks", std::move(chunks)},
                       {"checksums", std::move(units)}});
}

std::optional<DoneMarker> read_done(const ClusterJob& job, std::size_t part) try {
  const auto value = read_marker(job, job.part_file(part, "done.json"));
  return value ? done_of(job, part, *value) : std::nullopt;
} catch (const InvalidJson&) {
  return {};
}

std::vector<bool> parts_done(const ClusterJob& job) {
  std::vector<bool> done(job.parts());
  int unreadable = 0;
  for (const std::string& name : names_in_folder(job.file("parts"), unreadable)) {
    std::size_t part = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), part);
    if (read.ec == std::errc() && part < done.size() && std::string_view(read.ptr) == ".done.json") done[part] = true;
  }
  return done;
}

Status undo(const ClusterJob& job, std::size_t part) {
  const std::string path = job.part_file(part, "done.json");
  if (!remove_file(kCurrentFolder, path) && errno != ENOENT)
    return io_error(path, "remove the marker of a part", errno);
  return ok();
}

Status write_heartbeat(const ClusterJob& job, std::size_t part, const Heartbeat& heartbeat) {
  return write_marker(job, job.part_file(part, "beat.json"),
                      {{"state", kStates[static_cast<std::size_t>(heartbeat.state)]},
                       {"attempt", heartbeat.attempt},
                       {"host", heartbeat.host},
                       {"count", heartbeat.count},
                       {"units", heartbeat.units},
                       {"bytes_written", heartbeat.bytes_written},
                       {"exit_code", heartbeat.exit_code},
                       {"error", heartbeat.error}});
}

std::optional<Heartbeat> read_heartbeat(const ClusterJob& job, std::size_t part) try {
  const auto value = read_marker(job, job.part_file(part, "beat.json"));
  if (!value) return {};
  Heartbeat heartbeat;
  const auto state = std::ranges::find(kStates, needed_text(*value, "state"));
  if (state == std::end(kStates)) return {};
  heartbeat.state = static_cast<Heartbeat::State>(state - std::begin(kStates));
  heartbeat.attempt = needed_text(*value, "attempt");
  heartbeat.host = needed_text(*value, "host");
  heartbeat.count = needed_number(*value, "count");
  heartbeat.units = needed_number(*value, "units");
  heartbeat.bytes_written = needed_number(*value, "bytes_written");
  const std::uint64_t code = needed_number(*value, "exit_code");
  if (code > 255) return {};
  heartbeat.exit_code = static_cast<int>(code);
  heartbeat.error = needed_text(*value, "error");
  return heartbeat;
} catch (const InvalidJson&) {
  return {};
}

void remove_heartbeat(const ClusterJob& job, std::size_t part) {
  const std::string path = job.part_file(part, "beat.json");
  remove_file(kCurrentFolder, path);
}

Status write_seal(const ClusterJob& job, const SealMarker& marker) {
  json::array devices, inodes;
  for (const FileId& id : marker.ids) {
    devices.emplace_back(id.device);
    inodes.emplace_back(id.inode);
  }
  return write_marker(
      job, job.file("seal.json"),
      {{"devices", std::move(devices)}, {"inodes", std::move(inodes)}, {"finished", marker.is_finished}});
}

std::optional<SealMarker> read_seal(const ClusterJob& job) try {
  const auto value = read_marker(job, job.file("seal.json"));
  if (!value) return {};
  const auto devices = numbers_of(*value, "devices"), inodes = numbers_of(*value, "inodes");
  if (devices.size() != inodes.size()) return {};
  SealMarker marker;
  marker.is_finished = json_flag(*value, "finished");
  for (std::size_t i = 0; i < inodes.size(); ++i) marker.ids.push_back({devices[i], inodes[i]});
  return marker;
} catch (const InvalidJson&) {
  return {};
}

std::vector<bool> files_named(const Plan& plan, const SealMarker& marker) {
  const std::vector<StoredFile> files = stored_files(plan);
  std::vector<bool> named(files.size());
  if (marker.ids.size() != files.size()) return named;
  const auto scheme = find_store_scheme(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (scheme && scheme.value()->shared_uploads()) {
      named[i] = scheme.value()->find_sealed(files[i], {}, marker.ids[i]) == SealedFile::kPublished;
      continue;
    }
    FileStatus info;
    named[i] = get_status(kCurrentFolder, files[i].path, Links::kNoFollow, info) && info.inode == marker.ids[i].inode &&
               info.bytes == files[i].bytes;
  }
  return named;
}

ExitCode exit_code_of(std::uint64_t number) {
  const bool is_one =
      number >= static_cast<std::uint64_t>(ExitCode::kInternal) && number <= static_cast<std::uint64_t>(ExitCode::kIo);
  return is_one || number == static_cast<std::uint64_t>(ExitCode::kTransient) ? static_cast<ExitCode>(number)
                                                                              : ExitCode::kInternal;
}

}  // namespace ggufmill
