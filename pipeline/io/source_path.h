#pragma once
// Where a source lies, as users write it: a path of this machine, or the address of something on a server
// (hf://ORG/NAME, https://, s3://). Names are joined to either as std::filesystem::path does, and either is opened by
// open_source(): no reader knows which it has. pipeline/remote/README.md says what addresses there are.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill {

// Whether `path` begins with a scheme: "NAME://".
bool is_address(std::string_view path);

// What `path` names, for a reader of its header or of a small file. Exit code 4 for what is missing or cannot be read
// in parts, 6 for what the system or a server refuses, 75 for a server that does not answer.
Result<std::shared_ptr<const ByteSource>> open_source(const std::string& path);

// For those who read several files of one source: an address whose files may become others, as those of a branch do,
// with the commit that they are of now. Any other path stays as it is.
Result<std::string> pinned(const std::string& path);

// Nothing there, and nothing that can be looked at: false. Of an address whose server gives no list of files a file
// counts as there when the server says so; where it does not answer, opening it tells why.
bool is_file(const std::string& path);
bool is_folder(const std::string& path);
// The paths of the files and folders right in a folder, in no order.
Result<std::vector<std::string>> paths_in(const std::string& folder);

// The name of what an address names, without folders and commit: what a folder of this machine would be called.
std::string name_of_address(std::string_view address);

// What pipeline/remote gives, with libcurl; without it, errors that say so.
namespace remote {
Result<std::shared_ptr<const ByteSource>> open(const std::string& address);
// For a run, see ByteSource::open().
Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, const std::atomic<bool>* stop);
Result<std::string> pinned(const std::string& address);
bool is_file(const std::string& address);
bool is_folder(const std::string& address);
Result<std::vector<std::string>> paths_in(const std::string& folder);
}  // namespace remote

}  // namespace ggufmill
