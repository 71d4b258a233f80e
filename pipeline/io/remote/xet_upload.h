#pragma once
// The content of files, sent to the hub with Xet by the library hf_xet, which a program of Python runs (xet_upload.py).

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/requests.h"

namespace ggufmill::remote {

struct HubFile;

// Sends the files with a Python that has hf_xet. `url` is that of the hub's tokens for writing, and `access` has the
// token of the user, which only the environment of the program gets. `sent` receives bytes as they are done, also those
// that the hub had already; it is called by this thread. Exit code 6 if the hub refuses them, or the library fails.
Status send_by_xet(const std::string& python, std::span<const HubFile* const> files, const std::string& url,
                   const Access& access, const std::atomic<bool>* stop,
                   const std::function<void(std::uint64_t bytes)>& sent);

}  // namespace ggufmill::remote
