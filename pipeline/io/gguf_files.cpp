#include "pipeline/io/gguf_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"
#include "pipeline/io/byte_source.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

constexpr std::string_view kGguf = ".gguf", kHub = "hf://";
constexpr int kMaxLevels = 3;             // of folders below the one that is searched
constexpr std::size_t kMaxFolders = 200;  // that are searched
constexpr std::size_t kMaxListed = 12;    // files in a message
constexpr std::size_t kMaxCommitName = 200;

// Parts of names of files that are not models, as in llama.cpp.
constexpr std::string_view kNoModels[] = {"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"};
// Ends of names of a checkpoint's weights.
constexpr std::string_view kWeights[] = {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".msgpack", ".h5"};

std::string_view name_of(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

bool is_model(std::string_view name) {
  return std::ranges::none_of(kNoModels, [&](std::string_view part) { return name.find(part) != name.npos; });
}

// Returns the path of the first shard; the path itself if it is not a shard.
std::string first_shard(const std::string& path) {
  static const Pattern kShard = Pattern::compile("-[0-9]{5}-of-[0-9]{5}\\.gguf\\z").value();
  constexpr std::size_t kEnd = std::string_view("00001-of-00001.gguf").size();
  const auto is_shard = kShard.matches(path);
  if (!is_shard || !is_shard.value()) return path;
  return path.substr(0, path.size() - kEnd) + "00001" + path.substr(path.size() - kEnd + 5);
}

// Adds the paths of the GGUF files in a folder and its folders.
void find(const std::string& folder, int levels, std::size_t& folders, std::vector<std::string>& found) {
  if (++folders > kMaxFolders) return;
  const auto paths = paths_in(folder);
  if (!paths) return;
  for (const std::string& path : paths.value()) {
    if (name_of(path).starts_with('.')) continue;
    if (lower_case(path).ends_with(kGguf))
      found.push_back(path);
    else if (levels > 0 && is_folder(path))
      find(path, levels - 1, folders, found);
  }
}

// Returns an address of the hub at its commit, so that the hub is asked for its files once; any other path itself.
std::string at_commit(const std::string& folder) {
  const auto at = pinned(folder);
  return at ? at.value() : folder;
}

// Returns the folder of the main branch in a folder of the hub's cache; any other folder itself.
std::string snapshot_of(const std::string& folder) {
  const fs::path snapshots = fs::path(folder) / "snapshots", main = fs::path(folder) / "refs" / "main";
  if (is_address(folder) || !is_folder(snapshots) || !is_file(main)) return folder;
  const auto commit = read_text_file(main.string(), kMaxCommitName);
  if (!commit) return folder;
  const std::string_view name = std::string_view(commit.value()).substr(0, commit.value().find_first_of(" \r\n"));
  const std::string snapshot = (snapshots / std::string(name)).string();
  return !name.empty() && is_folder(snapshot) ? snapshot : folder;
}

// Returns the bytes of all shards; nullopt if that takes too many requests.
std::optional<std::uint64_t> bytes_of(const GgufFile& file) {
  std::uint64_t bytes = 0;
  for (const std::string& path : file.shards) {
    if (is_address(path)) {
      if (file.shards.size() > 1) return {};
      const auto opened = open_source(path);
      if (!opened) return {};
      bytes += opened.value()->describe()->bytes;
    } else {
      std::error_code failed;
      bytes += fs::file_size(path, failed);
      if (failed) return {};
    }
  }
  return bytes;
}

std::string listed(const std::vector<GgufFile>& files) {
  std::string text;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i == kMaxListed) return text + fmt::format("\nand {} more", files.size() - kMaxListed);
    const GgufFile& file = files[i];
    text += fmt::format("{}{}", text.empty() ? "" : "\n", file.path);
    const auto bytes = bytes_of(file);
    if (bytes) text += "  " + human_bytes(*bytes);
    if (file.shards.size() > 1) text += fmt::format(", in {} files", file.shards.size());
  }
  return text;
}

}  // namespace

std::vector<GgufFile> gguf_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::size_t folders = 0;
  find(snapshot_of(at_commit(folder)), kMaxLevels, folders, paths);
  std::map<std::string, GgufFile> by_path;
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    std::string first = first_shard(path);
    GgufFile& file = by_path[first];
    file.shards.push_back(path);
    file.is_model = is_model(name_of(path));
    file.path = std::move(first);
  }
  std::vector<GgufFile> files;
  for (auto& [path, file] : by_path) files.push_back(std::move(file));
  if (std::ranges::any_of(files, &GgufFile::is_model))
    std::erase_if(files, [](const GgufFile& file) { return !file.is_model; });
  return files;
}

bool holds_only_gguf(const std::string& folder) {
  if (!is_folder(folder)) return false;
  const std::string at = at_commit(folder);
  const auto paths = paths_in(at);
  const auto is_weights = [](const std::string& path) {
    return std::ranges::any_of(kWeights, [&](std::string_view end) { return path.ends_with(end); });
  };
  return paths && std::ranges::none_of(paths.value(), is_weights) && !gguf_files_in(at).empty();
}

Result<std::string> only_gguf_in(const std::string& folder) {
  const std::vector<GgufFile> files = gguf_files_in(folder);
  if (files.size() == 1) return files.front().path;
  if (files.empty())
    return input_error(
        folder, "the folder contains no GGUF files",
        "give a GGUF file; checkpoints are read by `source: {huggingface: FOLDER}` and `ggufmill convert`");
  Error error = input_error(folder, fmt::format("the folder contains {} models", files.size()),
                            fmt::format("give one of them, such as {}", files.front().path));
  if (folder.starts_with(kHub)) error.help += ", or its type, as in hf://ORG/NAME:Q4_K_M";
  error.detail = listed(files);
  return error;
}

Error not_a_checkpoint(const std::string& folder) {
  const std::vector<GgufFile> files = gguf_files_in(folder);
  const std::string first = files.empty() ? "FILE.gguf" : files.front().path;
  Error error = input_error(folder, "contains GGUF files and no checkpoint",
                            fmt::format("a GGUF file needs no conversion; to read it, give the file: source: {{gguf: "
                                        "{0}}}, {0} in the sources of a matrix, or `ggufmill quantize {0} OUT.gguf "
                                        "Q4_K_M`",
                                        first));
  error.detail = listed(files);
  return with_options(
      std::move(error),
      fmt::format("a GGUF file needs no conversion; to quantize it: `ggufmill quantize {} OUT.gguf Q4_K_M`", first));
}

std::string_view type_in_address(std::string_view address) {
  if (!address.starts_with(kHub)) return {};
  const std::size_t colon = address.find(':', kHub.size());
  return colon == address.npos ? std::string_view() : address.substr(colon + 1);
}

std::optional<std::string> gguf_of_type(std::span<const std::string> names, std::string_view type) {
  const std::string wanted = lower_case(type);
  for (const std::string& name : names) {
    if (!name.ends_with(kGguf) || !is_model(name_of(name)) || first_shard(name) != name) continue;
    const std::string text = lower_case(name);
    for (std::size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
      const char next = text[at + wanted.size()];  // the name ends with ".gguf", or it is the terminator
      if (next == '.' || next == '-') return name;
    }
  }
  return {};
}

}  // namespace ggufmill
