#include "pipeline/journal/leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/journal.h"
#include "pipeline/journal/output_claim.h"
#include "pipeline/plan/problems.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

constexpr const char* kAnyJob = ".abcdef";  // as long as the identity of every cluster job

std::optional<JournalText> journal_at(const std::string& path, const Plan& plan) {
  const auto file = open_source(path);
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
  return "the pipeline file, an option or a kernel module has changed";
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

bool Leftovers::is_running() const {
  return std::ranges::any_of(files, [](const Leftover& file) { return file.of_this_plan && file.is_in_use; });
}

bool Leftovers::can_resume() const { return units_done && !is_running(); }

std::vector<std::string> Leftovers::cluster_jobs() const {
  std::set<std::string> jobs;
  for (const Leftover& file : files)
    if (!file.cluster_job.empty()) jobs.insert(file.cluster_job);
  return {jobs.begin(), jobs.end()};
}

Leftovers find_leftovers(const Plan& plan) {
  const std::string identity = identity_of(plan);
  const std::string endings[] = {identity, identity + std::string(kJournalEnd), identity + kAnyJob,
                                 identity + kAnyJob + std::string(kClaimEnd)};
  std::map<const StoreScheme*, std::vector<std::string>> outputs;
  for (const WrittenPath& written : written_paths(plan))
    if (const auto scheme = find_store_scheme(written.path)) outputs[scheme.value()].push_back(written.path);
  Leftovers found;
  found.units = plan.units.size();
  for (const auto& [scheme, paths] : outputs)
    for (UnfinishedFile& left : scheme->find_unfinished(paths, endings)) {
      Leftover& file = found.files.emplace_back();
      file.path = std::move(left.path);
      file.output = std::move(left.output);
      file.bytes = left.bytes;
      file.of_this_plan = left.ending.starts_with(identity);
      file.is_in_use = left.is_in_use;
      if (!left.ending.ends_with(kJournalEnd)) continue;
      const auto journal = journal_at(file.path, plan);
      if (journal && file.of_this_plan) {
        std::set<std::uint32_t> units;
        for (const JournalText::Record& record : journal->done) units.insert(record.unit);
        found.units_done = units.size();
        found.is_half_published = is_half_published(plan, identity, journal->sealed);
      } else if (journal) {
        file.other_since = difference(*journal, plan);
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
  for (const Leftover& file : leftovers.files) {
    if (file.is_in_use) continue;
    BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(file.output));
    BOOST_OUTCOME_TRY(scheme->remove_unfinished(file.path));
  }
  return ok();
}

}  // namespace ggufmill
