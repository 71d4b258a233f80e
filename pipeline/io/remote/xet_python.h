#pragma once
// The Python that has hf_xet, the library of the hub's content store, and the programs that it runs for this one.

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {

// Returns true if HF_HUB_DISABLE_XET is set, as huggingface_hub reads it.
bool is_xet_disabled();
// A Python that has hf_xet.
struct XetPython {
  std::string path;  // empty: there is none, or is_xet_disabled()
  std::string why;   // there is none, as text for a message
};
// Looks for one, which starts it, and remembers the answer for as long as this process lives. Ends with interrupted()
// once `stop` is set. Thread-safe.
Result<XetPython> python_with_xet(const std::atomic<bool>* stop);
// Returns why there is none, without a way to stop it; empty if there is one.
std::string why_no_xet();

// The programs: xet_upload.py and xet_download.py.
std::string_view xet_uploader();
std::string_view xet_downloader();
// Returns the command that runs a program, without its arguments.
std::vector<std::string> xet_command(const std::string& python, std::string_view program);
// Returns the token in the headers; empty if there is none.
std::string token_in(const Access& access);

}  // namespace ggufmill::remote
