#pragma once
// The Python that has hf_xet, the library of the hub's content store, and the programs that it runs for this one.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {

// Returns true if HF_HUB_DISABLE_XET is set, as huggingface_hub reads it.
bool is_xet_disabled();
// Returns the path of a Python that has hf_xet; empty if there is none, or if is_xet_disabled(). Starts it, and
// remembers the answer for as long as this process lives. Thread-safe.
const std::string& python_with_xet();
// Returns why python_with_xet() is empty, as text for a message; empty if it is not.
std::string why_no_xet();

// The programs: xet_upload.py and xet_download.py.
std::string_view xet_uploader();
std::string_view xet_downloader();
// Returns the command that runs a program, without its arguments.
std::vector<std::string> xet_command(const std::string& python, std::string_view program);
// Returns the token in the headers; empty if there is none.
std::string token_in(const Access& access);

}  // namespace ggufmill::remote
