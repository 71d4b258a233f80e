#pragma once
// Location of a source as users write it: a local path, or the address of an object on a server (hf://ORG/NAME,
// https://, s3://). Names are appended to both in the same way as fs::path does, and both are opened by
// open_source(), so that readers need not distinguish them. source_scheme.h describes how a scheme is added, and
// pipeline/io/remote/README.md the supported addresses.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

// Returns true if `path` begins with a scheme: "NAME://".
bool is_address(std::string_view path);

// Opens `path` for reading its header, or for reading a small file. Exit code 4 if it is missing or cannot be read in
// parts, 6 if the system or a server refuses access, 75 if a server does not respond.
Result<std::shared_ptr<const ByteSource>> open_source(const std::string& path);

// For reading several files of one source. Returns an address whose files may change, such as that of a branch, with
// the commit it currently refers to, and the file that an address with a type stands for (hf://ORG/NAME:Q4_K_M). Any
// other path is returned unchanged.
Result<std::string> pinned(const std::string& path);

// Return false if the path does not exist or is not accessible. For an address whose server provides no file list, a
// file exists if the server reports it; if the server does not respond, is_file() returns true, and opening the file
// reports the reason.
bool is_file(const std::string& path);
bool is_folder(const std::string& path);
// Returns the paths of the files and folders directly in a folder, in no particular order.
Result<std::vector<std::string>> paths_in(const std::string& folder);

// Returns the last component of an address, without folders, commit and type: the name a local folder would have.
std::string name_of_address(std::string_view address);

// Returns the environment variables that say where servers are, and which files have the credentials for them. None of
// them has a secret as its value.
std::span<const char* const> server_variables();

}  // namespace ggufmill
