#include "pipeline/io/remote/xet_download.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/child_environment.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/xet_python.h"

namespace ggufmill::remote {
namespace {

constexpr auto kMaxDownloadStart = std::chrono::seconds(60);
constexpr int kLookPause = 50;  // milliseconds between looks at the clock

struct Start {
  std::string line;    // the address and its token; empty: the program has failed
  std::string reason;  // why
};

Result<Start> wait_for_line(ChildProgram& program, const Settings& settings) {
  Start start;
  const auto end = std::chrono::steady_clock::now() + kMaxDownloadStart;
  const auto printed = [&](ChildProgram::Stream stream, std::string_view text) {
    (stream == ChildProgram::Stream::kOut ? start.line : start.reason) += text;
  };
  while (program.read(kLookPause, printed)) {
    if (const std::size_t length = start.line.find('\n'); length != start.line.npos) {
      start.line.resize(length);
      return start;
    }
    if (settings.stopped()) return interrupted();
    if (std::chrono::steady_clock::now() > end) {
      start.reason = "it does not start";
      break;
    }
  }
  start.line.clear();
  return start;
}

Error failed(const Address& address, std::string why, std::string help) {
  return {ExitCode::kIo, address.text, "the hub offers the file by Xet only, and it could not be read that way",
          std::move(why), std::move(help)};
}

}  // namespace

XetDownload::XetDownload(std::unique_ptr<ChildProgram> program, Access access)
    : program_(std::move(program)), access_(std::move(access)) {}

XetDownload::~XetDownload() {
  program_->kill();
  program_->wait();
}

Result<std::unique_ptr<XetDownload>> XetDownload::start(const Address& address, const File& file, const Access& tokens,
                                                        const Settings& settings) {
  BOOST_OUTCOME_TRY(const XetPython python, python_with_xet(settings.stop));
  if (python.path.empty())
    return failed(address, python.why,
                  is_xet_disabled() ? "unset HF_HUB_DISABLE_XET" : "`pip install \"ggufmill[hub]\"`");
  std::vector<std::string> words = xet_command(python.path, xet_downloader());
  words.insert(words.end(), {tokens.url, file.hash, std::to_string(file.bytes)});
  Variables added;
  if (std::string token = token_in(tokens); !token.empty()) added.emplace_back(kHubTokenVariable, std::move(token));
  int problem = 0;
  const char* action = "";
  auto program = ChildProgram::start(words, child_environment(added), problem, action);
  if (!program) return io_error(words[0], action, problem);
  BOOST_OUTCOME_TRY(const Start started, wait_for_line(*program, settings));
  const std::size_t space = started.line.find(' ');
  if (space == started.line.npos) {
    program->kill();
    program->wait();
    return failed(address, fmt::format("hf_xet says: {}", quoted_answer(trimmed(started.reason))), "try again later");
  }
  const std::string secret = started.line.substr(space + 1);
  remember_secret(secret);
  Access access;
  access.url = started.line.substr(0, space);
  access.headers.push_back("Authorization: Bearer " + secret);
  access.is_anonymous = false;
  return std::unique_ptr<XetDownload>(new XetDownload(std::move(program), std::move(access)));
}

}  // namespace ggufmill::remote
