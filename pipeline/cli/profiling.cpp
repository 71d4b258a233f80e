#include "pipeline/cli/profiling.h"

#include <fmt/format.h>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/text_output.h"

namespace ggufmill {
namespace {

std::string part(double of, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * of / whole) : ""; }

void add_rows(std::vector<Row>& rows, const Profile::Sums& sums, double whole, const char* whose) {
  for (std::size_t i = 0; i < kProfileSteps; ++i) {
    const Profile::Sum& sum = sums[i];
    if (sum.calls == 0) continue;
    rows.push_back({name_of(static_cast<ProfileStep>(i)), with_commas(sum.calls), fmt::format("{:.3f}", sum.seconds),
                    part(sum.seconds, whole), whose});
  }
}

std::vector<Row> rows_of(const Profile::Summary& sums) {
  constexpr const char* kOfThreads = "of the threads' time";
  const double of_threads = sums.wall * sums.threads;
  std::vector<Row> rows;
  add_rows(rows, sums.worked, of_threads, kOfThreads);
  rows.push_back({"wait", "", fmt::format("{:.3f}", sums.wait), part(sums.wait, of_threads), kOfThreads});
  // Several go on at once: over 100 % is no mistake.
  add_rows(rows, sums.transferred, sums.wall, "of the run's time, in the background");
  return rows;
}

}  // namespace

Status tell_profile(const Profile& profile, const std::string& path, const Plan& plan, bool overwrite, bool quiet) {
  BOOST_OUTCOME_TRY(write_text(path, profile.trace(), plan.source.files, overwrite));
  if (quiet) return ok();
  const Profile::Summary sums = profile.summary();
  say_note(fmt::format("{:.3f} s on {} threads", sums.wall, sums.threads));
  std::string table = render_table(
      {{"step"}, {"calls", Align::kRight}, {"seconds", Align::kRight}, {"part", Align::kRight}, {""}}, rows_of(sums));
  while (table.ends_with('\n')) table.pop_back();
  say_note(table);
  say_note("wrote " + path + "  the trace: open it with https://ui.perfetto.dev");
  return ok();
}

}  // namespace ggufmill
