#include "pipeline/io/remote/xet_upload.h"

#include <fmt/format.h>

#include <charconv>
#include <mutex>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/hub_upload.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {

std::string_view xet_uploader();  // the program, see xet_upload.py

namespace {

constexpr std::string_view kAuthorization = "Authorization: Bearer ";
constexpr auto kMaxStart = std::chrono::seconds(30);

// Neither variables nor, by the program itself, the current folder can add to what Python imports. Packages that the
// user has installed for themselves (`pip install --user`) can.
std::vector<std::string> command_of(const std::string& python) {
  return {python, "-E", "-c", std::string(xet_uploader())};
}

// As huggingface_hub reads it.
bool is_disabled() {
  const std::string value = lower_case(environment("HF_HUB_DISABLE_XET"));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

Result<XetPython> find_python(const std::atomic<bool>* stop) {
  if (is_disabled()) return XetPython{};
  for (const std::string& name : {environment("GGUFMILL_PYTHON"), std::string("python3"), std::string("python")}) {
    if (name.empty()) continue;
    const auto found = find_program(name);
    if (!found) continue;
    CommandOptions how;
    how.time_limit = kMaxStart;
    how.stop = stop;
    const auto ran = run_command(command_of(*found), how);
    if (ran && ran.value().exit_code == 0) return XetPython{*found, {}};
    if (!ran && ran.error().code == ExitCode::kInterrupted) return ran.error();
  }
  return XetPython{{}, "no Python here has hf_xet, which `pip install \"ggufmill[hub]\"` installs"};
}

// Passes on the numbers that the program prints, one in a line, as differences.
class Counter {
 public:
  explicit Counter(const std::function<void(std::uint64_t)>& sent) : sent_(sent) {}

  void take(std::string_view text) {
    line_ += text;
    for (std::size_t end = line_.find('\n'); end != line_.npos; end = line_.find('\n')) {
      std::uint64_t done = 0;
      const auto read = std::from_chars(line_.data(), line_.data() + end, done);
      if (read.ec == std::errc() && read.ptr == line_.data() + end && done > done_) {
        if (sent_) sent_(done - done_);
        done_ = done;
      }
      line_.erase(0, end + 1);
    }
  }

 private:
  const std::function<void(std::uint64_t)>& sent_;
  std::string line_;
  std::uint64_t done_ = 0;
};

std::string token_in(const Access& access) {
  for (const std::string& header : access.headers)
    if (header.starts_with(kAuthorization)) return header.substr(kAuthorization.size());
  return {};
}

}  // namespace

Result<XetPython> python_with_xet(const std::atomic<bool>* stop) {
  static std::mutex mutex;
  static std::optional<XetPython> known;
  const std::scoped_lock lock(mutex);
  if (!known) {
    BOOST_OUTCOME_TRY(known, find_python(stop));
  }
  return *known;
}

Status send_by_xet(const std::string& python, std::span<const HubFile* const> files, const std::string& url,
                   const Access& access, const std::atomic<bool>* stop,
                   const std::function<void(std::uint64_t)>& sent) {
  std::vector<std::string> words = command_of(python);
  words.push_back(url);
  for (const HubFile* file : files) words.insert(words.end(), {file->path, file->sha256});
  Counter counter(sent);
  CommandOptions how;
  how.stop = stop;
  how.environment = {{"HF_TOKEN", token_in(access)}};
  how.printed = [&](std::string_view text) { counter.take(text); };
  BOOST_OUTCOME_TRY(const CommandResult ran, run_command(words, how));
  if (ran.exit_code == 0) return ok();
  return Error{
      ExitCode::kIo, url, "the files could not be sent by Xet",
      fmt::format("hf_xet says: {}", quoted_answer(trimmed(ran.err))),
      "run the same command again: what has been sent is not sent again; HF_HUB_DISABLE_XET=1 sends them by LFS"};
}

}  // namespace ggufmill::remote
