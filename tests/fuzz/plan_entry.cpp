// Fuzzes the files that a run leaves for others to read: written plans, journals, manifests.

#include "pipeline/journal/journal.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/written.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/plan_maker.h"

namespace ggufmill {
namespace {

const std::string kName = "fuzzed";

std::string problem_of(const Error& error) {
  const bool clear = error.code == ExitCode::kBadInput && error.where.starts_with(kName) && !error.what.empty() &&
                     error.what.find('\n') == std::string::npos && render(error).size() < 10000;
  return clear ? "" : "not a clear error: " + render(error);
}

Plan small_plan() {
  return testing::plan_of({{"a", testing::shape_of({256, 40}), "F32", {"Q4_K", "F16"}, true},
                           {"b", testing::shape_of({64, 3, 2}), "Q8_0", {"", "Q8_0"}, false}});
}

void with_halves(std::vector<std::string>& seeds) {
  for (std::size_t i = seeds.size(); i-- > 0;) seeds.push_back(seeds[i].substr(0, seeds[i].size() / 2));
}

}  // namespace

std::string fuzz_plan(std::string_view bytes) {
  const auto plan = read_plan(bytes, kName);
  if (!plan) return problem_of(plan.error());
  const std::string written = write_plan(plan.value());
  const auto again = read_plan(written, kName);
  if (!again) return "what was written cannot be read: " + render(again.error());
  return write_plan(again.value()) == written ? "" : "the plan changed";
}

std::vector<std::string> plan_seeds() {
  Plan plan = small_plan();
  std::vector<std::string> seeds{write_plan(plan)};
  plan.manifest = true;
  plan.nonfinite = Nonfinite::kZero;
  plan.warnings = {"one"};
  seeds.push_back(write_plan(plan));
  with_halves(seeds);
  seeds.insert(seeds.end(), {"{}", "[]", "", R"({"format":"ggufmill plan","version":2})"});
  return seeds;
}

std::string fuzz_journal(std::string_view bytes) {
  const auto journal = read_journal(bytes, kName);
  if (!journal) return problem_of(journal.error());
  const JournalText& text = journal.value();
  if (text.bytes > bytes.size()) return "it ends beyond its end";
  const auto whole = read_journal(bytes.substr(0, text.bytes), kName);
  const bool same = whole && !whole.value().is_damaged && whole.value().done.size() == text.done.size();
  return same ? "" : "its records change with what follows them";
}

std::vector<std::string> journal_seeds() {
  const std::string line =
      R"({"format":"ggufmill journal","version":1,"ggufmill":"0.1.0","identity":"00","units":3,"sources":[)"
      R"({"path":"a","bytes":1,"header_hash":"00","modified":2}]})"
      "\n";
  std::vector<std::string> seeds{line,
                                 line + journal_record(0, std::vector<std::uint64_t>{1, 2}, line) +
                                     journal_record(2, std::vector<std::uint64_t>{3}, line),
                                 line + journal_record(1, std::vector<std::uint64_t>{}, line) +
                                     journal_record(~0u, std::vector<std::uint64_t>{4, 5, 6, 7}, line),
                                 line + std::string(100, '\0')};
  with_halves(seeds);
  return seeds;
}

std::string fuzz_manifest(std::string_view bytes) {
  const auto manifest = read_manifest(bytes, kName);
  if (!manifest) return problem_of(manifest.error());
  const std::string written = write_manifest(manifest.value());
  const auto again = read_manifest(written, kName);
  if (!again) return "what was written cannot be read: " + render(again.error());
  return write_manifest(again.value()) == written ? "" : "the manifest changed";
}

std::vector<std::string> manifest_seeds() {
  Manifest manifest = manifest_of(small_plan(), 1);
  for (ManifestFile& file : manifest.files) file.sha256 = std::string(64, 'a');
  std::vector<std::string> seeds{write_manifest(manifest)};
  with_halves(seeds);
  seeds.insert(seeds.end(), {"{}", "[]", "", R"({"format":"ggufmill manifest","version":1,"files":[]})"});
  return seeds;
}

}  // namespace ggufmill
