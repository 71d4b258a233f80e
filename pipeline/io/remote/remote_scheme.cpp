#include "pipeline/io/remote/remote_scheme.h"

#include <fmt/format.h>

#include "pipeline/io/remote/remote_source.h"

namespace ggufmill::remote {
namespace {

// Parses the address of a source that is about to be read.
Result<Address> readable(const RemoteScheme& scheme, const std::string& text) {
  BOOST_OUTCOME_TRY(Address address, scheme.parse(text));
  if (is_http_available()) return address;
  Error error = usage_error("this ggufmill was built without libcurl and cannot read from servers",
                            "install a build with libcurl, or download the file and give its path");
  error.where = address.text;
  return error;
}

}  // namespace

Result<Address> RemoteScheme::parse(std::string_view text) const {
  if (text.size() > kMaxAddressLength)
    return bad_address(text, fmt::format("is longer than {} bytes", kMaxAddressLength), "");
  return parse_address(text);
}

Result<std::shared_ptr<const ByteSource>> RemoteScheme::open(const std::string& path) const {
  BOOST_OUTCOME_TRY(Address address, readable(*this, path));
  BOOST_OUTCOME_TRY(check_is_file(address));
  BOOST_OUTCOME_TRY(auto source, RemoteSource::open(std::move(address), Settings{}, RemoteSource::Use::kHeader));
  return std::shared_ptr<const ByteSource>(std::move(source));
}

Result<std::shared_ptr<const ByteSource>> RemoteScheme::open(const SourceFile& described, IoMode,
                                                             const std::atomic<bool>* stop) const {
  BOOST_OUTCOME_TRY(Address address, readable(*this, described.path));
  const Settings settings{.stop = stop};
  BOOST_OUTCOME_TRY(auto source, RemoteSource::open(std::move(address), settings, RemoteSource::Use::kRun));
  if (!is_same(described, *source->describe())) return changed(described, *source->describe());
  return std::shared_ptr<const ByteSource>(std::move(source));
}

Result<std::string> RemoteScheme::pinned(const std::string& path) const {
  BOOST_OUTCOME_TRY(const Address address, readable(*this, path));
  return pin(address);
}

bool RemoteScheme::is_file(const std::string& path) const {
  const auto address = readable(*this, path);
  return !address || is_file_at(address.value());
}

bool RemoteScheme::is_folder(const std::string& path) const {
  const auto address = readable(*this, path);
  return address && is_folder_at(address.value());
}

Result<std::vector<std::string>> RemoteScheme::paths_in(const std::string& folder) const {
  BOOST_OUTCOME_TRY(const Address address, readable(*this, folder));
  return paths_at(address);
}

bool RemoteScheme::is_file_at(const Address& address) const {
  const auto opened = open(address.text);
  return opened || opened.error().code != ExitCode::kBadInput;
}

Result<std::vector<std::string>> RemoteScheme::paths_at(const Address& address) const {
  return input_error(address.text, "is not a folder: only folders of a hub can be listed",
                     "give the file, or the index of a checkpoint (*.safetensors.index.json)");
}

}  // namespace ggufmill::remote
