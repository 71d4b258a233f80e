#include "pipeline/io/remote/xet_upload.h"

#include <fmt/format.h>

#include <charconv>

#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/remote/hub_upload.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/xet_python.h"

namespace ggufmill::remote {

namespace {

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

}  // namespace

Status send_by_xet(const std::string& python, std::span<const HubFile* const> files, const std::string& url,
                   const Access& access, const std::atomic<bool>* stop,
                   const std::function<void(std::uint64_t)>& sent) {
  std::vector<std::string> words = xet_command(python, xet_uploader());
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
