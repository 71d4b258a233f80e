#include "pipeline/cli/profiling.h"

#include <fmt/format.h>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/text_output.h"

namespace ggufmill {
namespace {

std::string part(double of, double whole) { return whole > 0 ? fmt::format("{:.1f} %", 100 * of / whole) : ""; }

// Reads and writes go on in the background, several at once: their part is of the run's time, and may be over 100 %.
bool in_background(ProfileStep step) { return step == ProfileStep::kRead || step == ProfileStep::kWrite; }

std::vector<Row> rows_of(const Profile::Summary& sums) {
  std::vector<Row> rows;
  const double of_threads = sums.wall * sums.threads;
  for (std::size_t i = 0; i < kProfileSteps; ++i) {
    const auto step = static_cast<ProfileStep>(i);
    const Profile::Sum& sum = sums.steps[i];
    if (sum.calls == 0) continue;
    const bool background = in_background(step);
    rows.push_back({name_of(step), with_commas(sum.calls), fmt::format("{:.3f}", sum.seconds),
                    part(sum.seconds, background ? sums.wall : of_threads),
                    background ? "of the run's time, in the background" : "of the threads' time"});
  }
  rows.push_back({"wait", "", fmt::format("{:.3f}", sums.wait), part(sums.wait, of_threads), "of the threads' time"});
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
