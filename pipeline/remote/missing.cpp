// Built instead of the other files if libcurl was not found.

#include "pipeline/io/source_path.h"
#include "pipeline/remote/address.h"

namespace ggufmill::remote {
namespace {

Error missing(const std::string& text) {
  const auto address = parse_address(text);
  if (!address) return address.error();
  Error error = usage_error("this ggufmill was built without libcurl and cannot read from servers",
                            "install a build with libcurl, or download the file and give its path");
  error.where = address.value().text;
  return error;
}

}  // namespace

Result<std::shared_ptr<const ByteSource>> open(const std::string& address) { return missing(address); }
Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, const std::atomic<bool>*) {
  return missing(described.path);
}
Result<std::string> pinned(const std::string& address) { return missing(address); }
bool is_file(const std::string&) { return true; }
bool is_folder(const std::string&) { return false; }
Result<std::vector<std::string>> paths_in(const std::string& folder) { return missing(folder); }

}  // namespace ggufmill::remote
