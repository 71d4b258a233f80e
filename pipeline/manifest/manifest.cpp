#include "pipeline/manifest/manifest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "pipeline/core/digest.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/threads.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill manifest";
constexpr int kVersion = 1;
constexpr std::size_t kReadBytes = 4 << 20;

// Computes the checksums of one file from its bytes, in order.
class FileSums {
 public:
  explicit FileSums(ManifestFile& file) : file_(file), state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    for (ManifestTensor& tensor : file.tensors) tensors_.push_back(&tensor);
    std::ranges::sort(tensors_, {}, &ManifestTensor::offset);
    XXH3_64bits_reset(state_.get());
  }

  void add(std::span<const std::byte> bytes) {
    sha256_.add(bytes);
    const std::uint64_t end = at_ + bytes.size();
    while (next_ < tensors_.size() && tensors_[next_]->offset < end) {
      ManifestTensor& tensor = *tensors_[next_];
      const std::uint64_t first = std::max(tensor.offset, at_), last = std::min(tensor.offset + tensor.bytes, end);
      const auto part = bytes.subspan(first - at_, last - first);
      XXH3_64bits_update(state_.get(), part.data(), part.size());
      if (last != tensor.offset + tensor.bytes) break;
      finish(tensor);
    }
    at_ = end;
  }

  void finish() {
    while (next_ < tensors_.size()) finish(*tensors_[next_]);  // tensors without bytes at the end of the file
    file_.sha256 = sha256_.hex();
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  void finish(ManifestTensor& tensor) {
    tensor.xxh3 = XXH3_64bits_digest(state_.get());
    XXH3_64bits_reset(state_.get());
    ++next_;
  }

  ManifestFile& file_;
  std::vector<ManifestTensor*> tensors_;
  std::size_t next_ = 0;
  std::uint64_t at_ = 0;
  std::unique_ptr<XXH3_state_t, Free> state_;
  Digest sha256_{DigestKind::kSha256};
};

json::string text_json(const std::string& text) { return json::string(is_utf8(text) ? text : quoted_name(text)); }

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::int64_t time_of(const json::value& value, std::string_view name) {  // negative before 1970
  const json::value& number = needed(value, name);
  if (!number.is_int64()) throw InvalidJson{fmt::format("'{}' is not an integer", name)};
  return number.get_int64();
}

ManifestFile read_file(const json::value& value) {
  ManifestFile file{needed_text(value, "name"), needed_number(value, "bytes"), needed_text(value, "sha256"), {}};
  if (!is_file_name(file.name))
    throw InvalidJson{fmt::format("the file {} is not next to the manifest", quoted_name(file.name))};
  std::uint64_t end = 0;
  for (const json::value& each : needed_list(value, "tensors")) {
    ManifestTensor tensor{needed_text(each, "name"), needed_number(each, "offset"), needed_number(each, "bytes"),
                          needed_hash(each, "xxh3"), needed_text(each, "made_of")};
    if (each.is_object() && each.get_object().contains("encoder")) tensor.encoder = needed_text(each, "encoder");
    const json::value* exact = json_member(each, "exact");
    tensor.exact = exact && exact->is_bool() && exact->get_bool();
    if (tensor.offset < end || tensor.offset > file.bytes || tensor.bytes > file.bytes - tensor.offset)
      throw InvalidJson{
          fmt::format("tensor {} is not within its file or overlaps the one before it", quoted_name(tensor.name))};
    end = tensor.offset + tensor.bytes;
    file.tensors.push_back(std::move(tensor));
  }
  return file;
}

// Returns when an output was last touched, if its store knows.
std::optional<std::int64_t> touched_at(const std::string& path) {
  const auto scheme = find_store_scheme(path);
  return scheme ? scheme.value()->touched_at(path) : std::nullopt;
}

bool has_checksums(const Plan& plan, const OutputFile& file, const ManifestFile& said, const std::atomic<bool>* stop) {
  Manifest one;
  one.files.push_back(said);
  const auto opened = open_source(file.path);
  if (!opened) return false;
  const FileReader read = [&](std::size_t, std::uint64_t at, std::span<std::byte> into) {
    return opened.value()->read(at, into);
  };
  return sum_up(one, read, threads_for(plan.limits.threads), stop) && one.files.front().sha256 == said.sha256;
}

// Returns the manifest of an output if it describes what the plan would make.
std::optional<Manifest> find_description(const Plan& plan, std::size_t output) {
  const std::string path = plan.manifest_path(output);
  const std::vector<OutputFile>& files = plan.outputs[output].files;
  if (!is_file(path)) return {};
  auto manifest = load_manifest(path);
  if (!manifest || manifest.value().identity != identity_of(plan, output)) return {};
  const Manifest& said = manifest.value();
  if (said.files.size() != files.size() || !touched_source(plan, said.sources, said.inode_times).empty()) return {};
  for (std::size_t i = 0; i < files.size(); ++i)
    if (said.files[i].name != fs::path(files[i].path).filename() || said.files[i].bytes != files[i].bytes) return {};
  return std::move(manifest).value();
}

bool is_unchanged(const Plan& plan, std::size_t output, const std::atomic<bool>* stop) {
  const std::vector<OutputFile>& files = plan.outputs[output].files;
  const std::optional<Manifest> manifest = find_description(plan, output);
  const auto named_at = touched_at(plan.manifest_path(output));
  if (!manifest || !named_at) return false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ManifestFile& said = manifest->files[i];
    const auto opened = open_source(files[i].path);
    if (!opened || opened.value()->bytes() != said.bytes) return false;
    std::string header(files[i].header.size(), '\0');
    if (!opened.value()->read(0, std::as_writable_bytes(std::span(header))) || header != files[i].header) return false;
    const auto touched = touched_at(files[i].path);
    // File times advance in steps of some milliseconds, so a file changed at the manifest's own time may have been
    // changed after it.
    const bool is_in_doubt = plan.verify || !touched || *touched >= *named_at;
    if (is_in_doubt && !has_checksums(plan, files[i], said, stop)) return false;
  }
  return true;
}

}  // namespace

std::string write_manifest(const Manifest& manifest) {
  json::array sources, files;
  for (std::size_t i = 0; i < manifest.sources.size(); ++i) {
    const SourceFile& source = manifest.sources[i];
    sources.push_back(json::object{{"path", text_json(source.path)},
                                   {"bytes", source.bytes},
                                   {"header_hash", hash_text(source.header_hash)},
                                   {"modified", source.modified},
                                   {"changed", i < manifest.inode_times.size() ? manifest.inode_times[i] : 0}});
  }
  for (const ManifestFile& file : manifest.files) {
    json::array tensors;
    for (const ManifestTensor& tensor : file.tensors) {
      json::object written{{"name", text_json(tensor.name)},
                           {"offset", tensor.offset},
                           {"bytes", tensor.bytes},
                           {"xxh3", hash_text(tensor.xxh3)},
                           {"made_of", tensor.made_of}};
      if (!tensor.encoder.empty()) written["encoder"] = text_json(tensor.encoder);
      if (tensor.exact) written["exact"] = true;
      tensors.push_back(std::move(written));
    }
    files.push_back(json::object{{"name", text_json(file.name)},
                                 {"bytes", file.bytes},
                                 {"sha256", file.sha256},
                                 {"tensors", std::move(tensors)}});
  }
  return json::serialize(json::object{{"format", kFormat},
                                      {"version", kVersion},
                                      {"ggufmill", manifest.ggufmill},
                                      {"identity", manifest.identity},
                                      {"recipe", text_json(manifest.recipe)},
                                      {"sources", std::move(sources)},
                                      {"modules", modules_json(manifest.modules)},
                                      {"files", std::move(files)}}) +
         "\n";
}

// As GNU sha256sum does for names with a backslash or a line break: a backslash before the checksum, and escapes in the
// name.
std::string write_sums(const Manifest& manifest) {
  std::string text;
  for (const ManifestFile& file : manifest.files) {
    std::string name;
    for (const char letter : file.name)
      name += letter == '\\' ? "\\\\" : letter == '\n' ? "\\n" : letter == '\r' ? "\\r" : std::string(1, letter);
    text += fmt::format("{}{}  {}\n", name == file.name ? "" : "\\", file.sha256, name);
  }
  return text;
}

Result<Manifest> read_manifest(std::string_view text, const std::string& path) {
  BOOST_OUTCOME_TRY(const json::value root, parse_json(path, text));
  if (json_string(root, "format") != kFormat)
    return input_error(path, "is not a ggufmill manifest", "set `manifest: true` in a pipeline file to write one");
  try {
    if (needed_number(root, "version") != kVersion)
      return input_error(path,
                         fmt::format("is a manifest of version {}; only version {} is supported",
                                     needed_number(root, "version"), kVersion),
                         "use the ggufmill that wrote it");
    Manifest manifest{
        needed_text(root, "ggufmill"), needed_text(root, "identity"), needed_text(root, "recipe"), {}, {}, {}};
    for (const json::value& source : needed_list(root, "sources")) {
      manifest.sources.push_back({needed_text(source, "path"), needed_number(source, "bytes"),
                                  needed_hash(source, "header_hash"), time_of(source, "modified")});
      manifest.inode_times.push_back(json_member(source, "changed") ? time_of(source, "changed") : 0);
    }
    if (json_member(root, "modules"))  // absent in manifests of earlier versions
      manifest.modules = read_modules(needed_list(root, "modules"));
    for (const json::value& file : needed_list(root, "files")) manifest.files.push_back(read_file(file));
    if (manifest.files.empty()) throw InvalidJson{"it lists no files"};
    return manifest;
  } catch (const InvalidJson& invalid_plan) {
    return input_error(path, "is not a valid manifest: " + invalid_plan.what);
  }
}

Result<Manifest> load_manifest(const std::string& path) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxJsonBytes));
  return read_manifest(text, path);
}

Status sum_up(Manifest& manifest, const FileReader& read, unsigned threads, const std::atomic<bool>* stop,
              const std::function<void(std::uint64_t)>& read_bytes) {
  return for_each_on_threads(threads, manifest.files.size(), [&](std::size_t index, auto& buffer) -> Status {
    ManifestFile& file = manifest.files[index];
    FileSums sums(file);
    for (std::uint64_t at = 0; at < file.bytes; at += buffer.size()) {
      if (stop && *stop) return interrupted();
      buffer.resize(std::min<std::uint64_t>(kReadBytes, file.bytes - at));
      BOOST_OUTCOME_TRY(read(index, at, buffer));
      sums.add(buffer);
      if (read_bytes) read_bytes(buffer.size());
    }
    sums.finish();
    return ok();
  });
}

Result<FileSum> sum_of(const std::string& path, const std::atomic<bool>* stop,
                       const std::function<void(std::uint64_t)>& read_bytes) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  Manifest one;
  one.files.push_back({path, file->bytes(), {}, {}});
  const FileReader read = [&](std::size_t, std::uint64_t at, std::span<std::byte> into) {
    return file->read(at, into);
  };
  BOOST_OUTCOME_TRY(sum_up(one, read, 1, stop, read_bytes));
  return FileSum{file->bytes(), one.files.front().sha256};
}

Manifest manifest_of(const Plan& plan, std::size_t output) {
  Manifest manifest{GGUFMILL_VERSION, identity_of(plan, output), plan.outputs[output].recipe, {}, plan.inode_times, {}};
  for (const SourceRef& source : plan.sources) manifest.sources.push_back(*source);
  manifest.modules = modules_of(plan, output);
  std::vector<std::string> made_of(plan.outputs[output].tensors.size()), encoders(made_of.size());
  for (const Step& step : plan.steps)
    for (const Encoding& encoding : step.encodings)
      for (const Place& place : encoding.places)
        if (place.output == output) {
          made_of[place.tensor] = identity_of(plan, step, encoding);
          if (!encoding.encoder.is_reference()) encoders[place.tensor] = describe(encoding.encoder);
        }
  for (const OutputFile& file : plan.outputs[output].files) {
    ManifestFile& described = manifest.files.emplace_back();
    described.name = fs::path(file.path).filename();
    described.bytes = file.bytes;
    for (const Placement& placement : file.tensors)
      described.tensors.push_back({plan.outputs[output].tensors[placement.tensor].name, placement.offset,
                                   placement.bytes, 0, made_of[placement.tensor], encoders[placement.tensor]});
  }
  return manifest;
}

bool is_described(const Plan& plan, std::size_t output) { return find_description(plan, output).has_value(); }

std::vector<std::string> orphaned_manifests(const Plan& plan) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; plan.manifest && i < plan.outputs.size(); ++i) {
    const std::vector<OutputFile>& files = plan.outputs[i].files;
    const bool is_gone = std::ranges::all_of(files, [](const OutputFile& file) {
      std::error_code error;
      return !is_address(file.path) && fs::symlink_status(file.path, error).type() == fs::file_type::not_found;
    });
    if (is_gone && is_described(plan, i)) paths.insert(paths.end(), {plan.manifest_path(i), plan.sums_path(i)});
  }
  return paths;
}

std::vector<bool> unchanged_outputs(const Plan& plan, const std::atomic<bool>* stop) {
  std::vector<bool> unchanged;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) unchanged.push_back(is_unchanged(plan, i, stop));
  return unchanged;
}

}  // namespace ggufmill
