#include "pipeline/journal/leftovers.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "pipeline/core/folder.h"
#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/journal.h"
#include "pipeline/journal/output_claim.h"
#include "pipeline/plan/problems.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJournalEnd = ".journal";
constexpr const char* kAnyJob = ".abcdef";  // as long as the identity of every cluster job

std::optional<JournalText> journal_at(const std::string& path, const Plan& plan) {
  const auto file = InputFile::open(path);
  if (!file || file.value()->bytes() > most_journal_bytes(plan)) return {};
  std::string text(file.value()->bytes(), '\0');
  if (!file.value()->read(0, std::as_writable_bytes(std::span(text)))) return {};
  auto journal = read_journal(text, path);
  return journal ? std::optional(std::move(journal).value()) : std::nullopt;
}

// Returns how the plan of a journal differs from `plan`, as far as the journal reveals it.
std::string difference(const JournalText& journal, const Plan& plan) {
  if (journal.ggufmill != GGUFMILL_VERSION) return fmt::format("it was written by ggufmill {}", journal.ggufmill);
  for (const SourceFile& source : journal.sources)
    for (const SourceRef& now : plan.sources)
      if (now->path == source.path && (now->bytes != source.bytes || now->modified != source.modified))
        return fmt::format("{} has changed since", quoted_name(now->path));
  return "it belongs to another plan";
}

std::uint64_t bytes_on_disk(const std::string& path) {
  struct stat info {};
  const auto call = [&] { return system_calls().fstatat(AT_FDCWD, path.c_str(), &info, AT_SYMLINK_NOFOLLOW); };
  return retry(call) < 0 ? 0 : static_cast<std::uint64_t>(info.st_blocks) * 512;
}

// Sets `cluster_job` for the outputs of cluster jobs that still exist, and for the claims next to them. A sealed job
// may leave a claim without the file it is for, and nothing else.
void find_jobs(std::vector<Leftover>& files) {
  const auto is_claim = [](const Leftover& file) { return file.path.ends_with(kClaimEnd); };
  const auto claimed_file = [&](const Leftover& file) {
    if (!is_claim(file)) return file.path;
    const std::string key = file.path.substr(file.path.rfind(kTemporaryMark) + kTemporaryMark.size());
    return temporary_path(file.output, key.substr(0, key.size() - kClaimEnd.size()));
  };
  std::map<std::string, std::string> jobs;  // folder of the job, by the claimed file
  for (const Leftover& file : files)
    if (!is_claim(file)) jobs[file.path];
  for (const Leftover& file : files) {
    const auto claimed = jobs.find(claimed_file(file));
    const auto claim = is_claim(file) && claimed != jobs.end() ? read_claim(file.path) : std::nullopt;
    if (claim && claim_path(file.output, claim->key) == file.path && is_held(*claim))
      claimed->second = claim->shown_folder;
  }
  for (Leftover& file : files)
    if (const auto claimed = jobs.find(claimed_file(file)); claimed != jobs.end()) file.cluster_job = claimed->second;
}

}  // namespace

bool is_locked(const std::string& path) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const Descriptor file(retry([&] { return system_calls().openat(AT_FDCWD, path.c_str(), flags, 0); }));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool Leftovers::is_running() const {
  return std::ranges::any_of(files, [](const Leftover& file) { return file.of_this_plan && file.is_in_use; });
}

bool Leftovers::can_go_on() const { return units_done && !is_running(); }

std::vector<std::string> Leftovers::cluster_jobs() const {
  std::set<std::string> jobs;
  for (const Leftover& file : files)
    if (!file.cluster_job.empty()) jobs.insert(file.cluster_job);
  return {jobs.begin(), jobs.end()};
}

Leftovers find_leftovers(const Plan& plan) {
  const std::string identity = identity_of(plan);
  std::map<std::string, std::string> outputs;  // by the common beginning of the names of files next to them
  std::set<std::string> folders;
  for (const WrittenPath& written : written_paths(plan)) {
    // A long name is truncated to make room for the ending, so it begins differently for each kind of file.
    for (const std::string& ending : {identity, identity + std::string(kJournalEnd), identity + kAnyJob,
                                      identity + kAnyJob + std::string(kClaimEnd)}) {
      const std::string temporary = temporary_path(written.path, ending);
      outputs.emplace(temporary.substr(0, temporary.rfind(kTemporaryMark)), written.path);
      folders.insert(temporary.substr(0, temporary.rfind('/') + 1));
    }
  }
  Leftovers found;
  found.units = plan.units.size();
  for (const std::string& folder : folders) {
    int unreadable = 0;
    for (const std::string& name : names_in_folder(folder.empty() ? "." : folder, unreadable)) {
      const std::string path = folder + name;
      const std::size_t mark = path.rfind(kTemporaryMark);
      const auto output = mark == path.npos ? outputs.end() : outputs.find(path.substr(0, mark));
      std::error_code error;
      if (output == outputs.end() || !fs::is_regular_file(path, error)) continue;
      const std::string rest = path.substr(mark + kTemporaryMark.size());
      Leftover& file = found.files.emplace_back();
      file.path = path;
      file.output = output->second;
      file.bytes = fs::file_size(path, error);
      file.of_this_plan = rest.starts_with(identity);
      file.is_in_use = is_locked(path);
      if (!rest.ends_with(kJournalEnd)) continue;
      const auto journal = journal_at(path, plan);
      if (journal && file.of_this_plan) {
        std::set<std::uint32_t> units;
        for (const JournalText::Record& record : journal->done) units.insert(record.unit);
        found.units_done = units.size();
      } else if (journal) {
        file.other_since = difference(*journal, plan);
      }
    }
  }
  find_jobs(found.files);
  std::ranges::sort(found.files, {}, &Leftover::path);
  return found;
}

std::vector<Error> claimed_by_jobs(const Leftovers& leftovers) {
  std::vector<Error> errors;
  for (const std::string& job : leftovers.cluster_jobs()) {
    std::set<std::string> outputs;
    for (const Leftover& file : leftovers.files)
      if (file.cluster_job == job) outputs.insert(file.output);
    const std::string more = outputs.size() > 1 ? fmt::format(" and {} more", outputs.size() - 1) : "";
    errors.push_back({ExitCode::kUsage, *outputs.begin(),
                      fmt::format("the cluster job in {} is writing this output{}", quoted_name(job), more), "",
                      fmt::format("`ggufmill status {0}` reports its progress, `ggufmill resume {0}` resumes it, "
                                  "`ggufmill cancel {0} --discard` removes it",
                                  job)});
  }
  return errors;
}

Status discard(const Leftovers& leftovers) {
  Diagnostics claimed;
  for (Error& error : claimed_by_jobs(leftovers)) claimed.add(std::move(error));
  if (!claimed.empty()) return claimed.together();
  for (const Leftover& file : leftovers.files)
    if (!file.is_in_use && retry([&] { return system_calls().unlinkat(AT_FDCWD, file.path.c_str(), 0); }) < 0 &&
        errno != ENOENT)
      return io_error(file.path, "remove the leftover file of an earlier run", errno);
  return ok();
}

std::uint64_t reserved_before(const std::string& output, const std::string& identity) {
  return bytes_on_disk(temporary_path(output, identity));
}

}  // namespace ggufmill
