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
#include "pipeline/core/record.h"
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

// A text that becomes part of the names of files.
void check_word(const std::string& word, std::string_view name) {
  const auto is_usual = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
  };
  if (word.empty() || !std::ranges::all_of(word, is_usual))
    throw InvalidJson{fmt::format("'{}' is {}, not letters and digits", name, quoted_name(word))};
}

RecordKind<std::string> word_text() { return checked_kind(UsualKind<std::string>::make(), check_word); }

// Checks a text that becomes an argument of the engine's commands; `wrong` returns the problem with it.
void check_argument(const std::string& text, std::string_view name, std::string (*wrong)(std::string_view)) {
  if (const std::string why = wrong(text); !why.empty())
    throw InvalidJson{fmt::format("'{}' is {}: {}", name, quoted_name(text), why)};
}

// The same; it may be empty.
RecordKind<std::string> argument(std::string (*wrong)(std::string_view)) {
  return checked_kind(UsualKind<std::string>::make(), [wrong](const std::string& text, std::string_view name) {
    if (!text.empty()) check_argument(text, name, wrong);
  });
}

RecordKind<std::vector<std::string>> arguments(std::string (*wrong)(std::string_view)) {
  return checked_kind(UsualKind<std::vector<std::string>>::make(),
                      [wrong](const std::vector<std::string>& texts, std::string_view name) {
                        for (const std::string& text : texts) check_argument(text, name, wrong);
                      });
}

RecordKind<ClusterOptions::Engine> engine_word() {
  using Engine = ClusterOptions::Engine;
  return word_kind<Engine>([](Engine engine) { return kClusterEngines[static_cast<std::size_t>(engine)]; },
                           [](const std::string& word) -> std::optional<Engine> {
                             const auto found = std::ranges::find(kClusterEngines, word);
                             if (found == std::end(kClusterEngines)) return {};
                             return static_cast<Engine>(found - std::begin(kClusterEngines));
                           },
                           "is neither slurm nor none");
}

const RecordForm<ClusterOptions>& options_form() {
  using Options = ClusterOptions;
  static const RecordForm<Options> form{member("engine", &Options::engine, engine_word()),
                                        member("partition", &Options::partition, argument(wrong_engine_argument)),
                                        member("account", &Options::account, argument(wrong_engine_argument)),
                                        member("time", &Options::time, argument(wrong_engine_time)),
                                        member("constraint", &Options::constraint, argument(wrong_engine_argument)),
                                        member("cpus", &Options::cpus),
                                        member("memory", &Options::memory),
                                        member("max_parallel", &Options::max_parallel),
                                        member("options", &Options::options, arguments(wrong_engine_option))};
  return form;
}

RecordKind<std::optional<IoMode>> io_word() {
  return UsualKind<std::optional<IoMode>>::of(
      word_kind<IoMode>([](IoMode mode) { return io_mode_names()[static_cast<std::size_t>(mode)]; },
                        [](const std::string& word) { return io_mode_named(word); }, "is not a valid I/O mode"));
}

const RecordForm<Limits>& limits_form() {
  using Spool = decltype(Limits::spool);
  static const RecordForm<Spool> spool{member("folder", &Spool::folder), member("size", &Spool::size)};
  static const RecordForm<Limits> form{member("memory", &Limits::memory), member("threads", &Limits::threads),
                                       member("nice", &Limits::nice), member("spool", &Limits::spool, spool.kind()),
                                       member("io", &Limits::io, io_word())};
  return form;
}

const RecordForm<ClusterJob>& job_form() {
  using Job = ClusterJob;
  static const RecordForm<Job> form{member("working_folder", &Job::working_folder),
                                    member("name", &Job::name),
                                    member("identity", &Job::identity, word_text()),
                                    member("id", &Job::id, word_text()),
                                    member("overwrite", &Job::overwrite),
                                    member("cuts", &Job::cuts),
                                    member("costs", &Job::costs),
                                    member("limits", &Job::limits, limits_form().kind()),
                                    member("kernel_directories", &Job::kernel_directories),
                                    member("isa", &Job::isa),
                                    member("options", &Job::options, options_form().kind())};
  return form;
}

ClusterJob job_of(const json::value& value, const std::string& folder) {
  ClusterJob job = job_form().read(value);
  job.folder = job.array_folder = folder;
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

const RecordForm<DoneMarker>& done_form() {
  using Marker = DoneMarker;
  static const RecordForm<UploadedChunk> chunk{member("file", &UploadedChunk::file),
                                               member("number", &UploadedChunk::number),
                                               member("tag", &UploadedChunk::tag)};
  static const RecordForm<Marker> form{member("host", &Marker::host),
                                       member("isa", &Marker::isa),
                                       member("seconds", &Marker::seconds),
                                       member("bytes_read", &Marker::bytes_read),
                                       member("bytes_written", &Marker::bytes_written),
                                       member("units_kept", &Marker::units_kept),
                                       member("inodes", &Marker::inodes),
                                       member("chunks", &Marker::chunks, chunk.list())};
  return form;
}

std::optional<DoneMarker> done_of(const ClusterJob& job, std::size_t part, const json::value& value) {
  DoneMarker marker = done_form().read(value);
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
  return marker;
}

constexpr std::string_view kStates[] = {"running", "failed", "stopped"};

const RecordForm<Heartbeat>& heartbeat_form() {
  using Beat = Heartbeat;
  const auto state = word_kind<Beat::State>([](Beat::State it) { return kStates[static_cast<std::size_t>(it)]; },
                                            [](const std::string& word) -> std::optional<Beat::State> {
                                              const auto found = std::ranges::find(kStates, word);
                                              if (found == std::end(kStates)) return {};
                                              return static_cast<Beat::State>(found - std::begin(kStates));
                                            },
                                            "is not a state");
  const RecordKind<int> exit_code{[](const int& code) { return json::value(code); },
                                  [](const json::value& object, std::string_view name) {
                                    const std::uint64_t code = needed_number(object, name);
                                    if (code > 255) throw InvalidJson{fmt::format("'{}' is too large", name)};
                                    return static_cast<int>(code);
                                  }};
  static const RecordForm<Beat> form{member("state", &Beat::state, state),
                                     member("attempt", &Beat::attempt),
                                     member("host", &Beat::host),
                                     member("count", &Beat::count),
                                     member("units", &Beat::units),
                                     member("bytes_written", &Beat::bytes_written),
                                     member("exit_code", &Beat::exit_code, exit_code),
                                     member("error", &Beat::error)};
  return form;
}

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
  json::object object{{"format", kJobFormat}, {"version", kJobVersion}, {"ggufmill", GGUFMILL_VERSION}};
  job_form().add(job, object);
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
  json::object object{{"part", part}, {"first", job.range(part).first}};
  done_form().add(marker, object);
  object["checksums"] = std::move(units);
  return write_marker(job, job.part_file(part, "done.json"), std::move(object));
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
  return write_marker(job, job.part_file(part, "beat.json"), heartbeat_form().write(heartbeat));
}

std::optional<Heartbeat> read_heartbeat(const ClusterJob& job, std::size_t part) try {
  const auto value = read_marker(job, job.part_file(part, "beat.json"));
  return value ? std::optional(heartbeat_form().read(*value)) : std::nullopt;
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
  const auto numbers = UsualKind<std::vector<std::uint64_t>>::make();
  const auto devices = numbers.read(*value, "devices"), inodes = numbers.read(*value, "inodes");
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
