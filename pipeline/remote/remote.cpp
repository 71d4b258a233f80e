// Addresses as sources: implements the functions of pipeline/io/source_path.h.

#include <algorithm>
#include <set>

#include "pipeline/io/source_path.h"
#include "pipeline/remote/hub.h"
#include "pipeline/remote/remote_source.h"

namespace ggufmill::remote {
namespace {

// Returns the prefix of the names of the hub's files below a folder, "" for the model itself.
std::string below(const Address& folder) { return folder.path.empty() ? "" : folder.path + "/"; }

Result<Address> parse_hub_folder(const std::string& text) {
  BOOST_OUTCOME_TRY(Address address, parse_address(text));
  if (address.scheme != Scheme::kHub)
    return input_error(address.text, "is not a folder: only folders of a hub can be listed",
                       "give the file, or the index of a checkpoint (*.safetensors.index.json)");
  return address;
}

}  // namespace

Result<std::shared_ptr<const ByteSource>> open(const std::string& text) {
  BOOST_OUTCOME_TRY(Address address, parse_address(text));
  if (address.scheme == Scheme::kHub && address.path.empty())
    return input_error(address.text, "is a model, not a file", "add the file's name: hf://ORG/NAME@REVISION/FILE");
  BOOST_OUTCOME_TRY(auto source, RemoteSource::open(std::move(address), Settings{}, RemoteSource::Use::kHeader));
  return std::shared_ptr<const ByteSource>(std::move(source));
}

Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(Address address, parse_address(described.path));
  const Settings settings{.stop = stop};
  BOOST_OUTCOME_TRY(auto source, RemoteSource::open(std::move(address), settings, RemoteSource::Use::kRun));
  if (!is_same(described, *source->describe())) return changed(described, *source->describe());
  return std::shared_ptr<const ByteSource>(std::move(source));
}

Result<std::string> pinned(const std::string& text) {
  BOOST_OUTCOME_TRY(const Address address, parse_address(text));
  if (address.is_pinned()) return address.text;
  if (!address.path.empty()) {
    BOOST_OUTCOME_TRY(const auto source, RemoteSource::open(address, Settings{}, RemoteSource::Use::kRun));
    BOOST_OUTCOME_TRY(const Address opened, parse_address(source->path()));
    if (opened.is_pinned()) return opened.text;
  }
  BOOST_OUTCOME_TRY(const auto listing, list_model(address, Settings{}));
  return address.at(listing->commit).text;
}

bool is_file(const std::string& text) {
  const auto address = parse_address(text);
  if (!address) return true;
  if (address.value().scheme == Scheme::kHub) {
    const auto listing = list_model(address.value(), Settings{});
    return !listing || std::ranges::binary_search(listing.value()->files, address.value().path);
  }
  const auto opened = open(text);
  return opened || opened.error().code != ExitCode::kBadInput;
}

bool is_folder(const std::string& text) {
  const auto address = parse_address(text);
  if (!address || address.value().scheme != Scheme::kHub) return false;
  if (address.value().path.empty()) return true;
  const auto listing = list_model(address.value(), Settings{});
  return listing && std::ranges::any_of(listing.value()->files, [&](const std::string& name) {
           return name.starts_with(below(address.value()));
         });
}

Result<std::vector<std::string>> paths_in(const std::string& folder) {
  BOOST_OUTCOME_TRY(const Address address, parse_hub_folder(folder));
  BOOST_OUTCOME_TRY(const auto listing, list_model(address, Settings{}));
  const std::string prefix = below(address);
  std::set<std::string> names;
  for (const std::string& name : listing->files)
    if (name.starts_with(prefix)) names.insert(name.substr(0, name.find('/', prefix.size())));
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(address.file(name).text);
  return paths;
}

}  // namespace ggufmill::remote
