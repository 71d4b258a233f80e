#include "pipeline/api/edit.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "pipeline/core/metadata_keys.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/system.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/temporary_file.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

constexpr std::size_t kPiece = 64 << 20;
constexpr const char* kIdentity = "edit";  // of the temporary file, so that the next edit finds it

// Overwrites the beginning of an existing file and syncs it to disk.
Status write_beginning(const std::string& path, const std::string& bytes) {
  const Descriptor file = open_file(kCurrentFolder, path, kOpenWrite | kOpenNoFollow | kOpenNoWaiting);
  if (!file) return io_error(path, "open the file for writing", errno);
  BOOST_OUTCOME_TRY(write_all(file.get(), path, 0, std::as_bytes(std::span(bytes))));
  if (retry([&] { return system_calls().sync(file.get()); }) != 0) return io_error(path, "sync the file", errno);
  return ok();
}

Result<std::string> read_beginning(const std::string& path, std::uint64_t bytes) {
  BOOST_OUTCOME_TRY(const auto file, InputFile::open(path));
  std::string text(bytes, '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

// Trailer of a header backup, which exists until an in-place edit is complete: the header, then this.
struct CopyEnd {
  char magic[8] = {'g', 'g', 'u', 'f', 'm', 'i', 'l', 'l'};
  std::uint64_t bytes = 0, hash = 0;  // of the header
};

// Reads the header from a backup that belongs to this user or to the model's owner.
Result<std::string> read_copy(const std::string& path, std::uint64_t owner) {
  const auto wrong = [&](std::string what) {
    return Error{ExitCode::kBadInput, path, std::move(what), "nothing was written",
                 "this file is the header of the model from before an interrupted edit; check the model with "
                 "`ggufmill verify`, then remove this file"};
  };
  FileStatus info;
  if (!get_status(kCurrentFolder, path, Links::kNoFollow, info)) return io_error(path, "stat the file", errno);
  const bool is_own = info.owner == own_user() || info.owner == owner;
  if (!info.is_file() || !is_own || (info.mode & (kGroupMayWrite | kOthersMayWrite)) != 0 || info.links != 1)
    return wrong("the header backup may belong to another user");
  BOOST_OUTCOME_TRY(const auto file, InputFile::open(path));
  BOOST_OUTCOME_TRY(std::string text, read_beginning(path, file->bytes()));
  const std::size_t bytes = text.size() - std::min(text.size(), sizeof(CopyEnd));
  std::string header = text.substr(0, bytes);
  if (text != header_copy(header)) return wrong("the header backup is damaged");
  return header;
}

// Copies a range of bytes from one file to an offset in another.
Status copy(const InputFile& from, std::uint64_t at, AtomicFile& to, std::uint64_t place, std::uint64_t bytes,
            const std::atomic<bool>* stop) {
  std::vector<std::byte> buffer;
  bool in_kernel = true;
  for (std::uint64_t done = 0; done < bytes;) {
    if (stop && *stop) return interrupted();
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, bytes - done));
    if (in_kernel) {
      std::byte none{};  // never used: the kernel copies the bytes
      BOOST_OUTCOME_TRY(const Transfer source, from.begin_read(at + done, {&none, 1}));
      BOOST_OUTCOME_TRY(const Transfer target, to.begin_write(place + done, {&none, 1}));
      const std::int64_t copied = copy_in_kernel(source.descriptor, at + done, target.descriptor, place + done, part);
      if (copied > 0) {
        to.end_write(place + done, static_cast<std::size_t>(copied));
        done += static_cast<std::uint64_t>(copied);
        continue;
      }
      // Other file system, or no kernel support: copy through memory, which also yields a proper error message.
      in_kernel = false;
    }
    buffer.resize(std::min<std::size_t>(part, 4 << 20));
    BOOST_OUTCOME_TRY(from.read(at + done, buffer));
    BOOST_OUTCOME_TRY(to.write(place + done, buffer));
    done += buffer.size();
  }
  return ok();
}

class Edit {
 public:
  Edit(const std::string& path, const EditOptions& options) : path_(path), options_(options) {}

  Result<Edited> run() {
    if (is_address(path_))
      return usage_error(fmt::format("{} is not a local file", quoted_name(remote::without_secrets(path_))),
                         "use a job with a `metadata` stage to write an edited copy locally");
    BOOST_OUTCOME_TRY(lock());
    BOOST_OUTCOME_TRY(backup_, header_backup(path_));
    FileStatus status;
    if (get_status(kCurrentFolder, path_, Links::kNoFollow, status) && status.is_link() && options_.output.empty())
      return usage_error(fmt::format("{} is a symbolic link", quoted_name(path_)),
                         "edit its target, or write another file with " + option_reference("output"));
    has_other_names_ = status.links > 1;
    owner_ = status.owner;
    BOOST_OUTCOME_TRY(restore());
    BOOST_OUTCOME_TRY(remove_leftover());
    BOOST_OUTCOME_TRY(const Model before, read_gguf(path_, options_.types));
    BOOST_OUTCOME_TRY(const Model after, changed(before));
    BOOST_OUTCOME_TRY(check_output(after));
    list_changes(before.metadata, after.metadata);
    BOOST_OUTCOME_TRY(check_changes());
    gguf::SinkOptions sink{.path = options_.output.empty() ? path_ : options_.output};
    if (before.files.size() > 1) sink.shards = gguf::Shards::kSource;
    if (!before.tensors.empty()) sink.big_endian = first_extent(*before.tensors.front().expression)->big_endian;
    BOOST_OUTCOME_TRY(const auto made, make_gguf_sink(std::move(sink)));
    if (!edited_.tensors.empty()) {
      BOOST_OUTCOME_TRY(const Model adapted, made->adapt(after));  // warns of names that llama.cpp does not read
      for (const std::string& warning : adapted.warnings)
        if (std::ranges::find(edited_.warnings, warning) == edited_.warnings.end()) edited_.warnings.push_back(warning);
    }
    BOOST_OUTCOME_TRY(const auto files, made->layout(after));
    const OutputFile& first = files.front();
    edited_.bytes = first.bytes;
    edited_.in_place = options_.output.empty() && !has_other_names_ && stays(before, after, first);
    if (!edited_.in_place && files.size() > 1)
      return usage_error("the header of the first shard has no room for this change",
                         "use a job with `shards: source` and a `metadata` stage to rewrite the model");
    if (options_.dry_run || (!edited_.is_changed() && options_.output.empty())) return std::move(edited_);
    BOOST_OUTCOME_TRY(edited_.in_place ? write_in_place(before, first) : rewrite(after, first));
    return std::move(edited_);
  }

 private:
  // Prevents concurrent edits. A second edit would take the backup of the first for one left by an interrupted edit.
  Status lock() {
    if (options_.dry_run) return ok();
    lock_ = open_file(kCurrentFolder, path_, kOpenRead | kOpenNoWaiting);
    if (!lock_) return ok();  // the code that reads the file reports the error
    FileStatus locked, named;
    if (try_lock(lock_.get(), Lock::kExclusive) && get_status(lock_.get(), locked) &&
        get_status(kCurrentFolder, path_, Links::kFollow, named) && named.is_same_file(locked))
      return ok();
    return Error{ExitCode::kTransient, path_, "another edit of this file is in progress", "", "wait until it finishes"};
  }

  Status check_output(const Model& after) const {
    if (options_.output.empty()) return ok();
    std::vector<std::string> read = make_metadata_stage(options_.changes)->inputs();
    if (options_.like) read.push_back(options_.like->path);
    for (const std::string& path : after.paths()) read.push_back(path);
    return check_written({options_.output, "output"}, read, options_.overwrite);
  }

  // Returns the model with all changes.
  Result<Model> changed(const Model& before) {
    Model model = before;
    MetadataOptions changes = options_.changes;
    TensorChanges tensors{.drop = options_.drop, .take = options_.take};
    if (options_.like) {
      BOOST_OUTCOME_TRY(MetadataOptions like,
                        changes_like(path_, before, *options_.like, options_.types, model.warnings));
      BOOST_OUTCOME_TRY(model, make_metadata_stage(std::move(like))->apply(std::move(model)));
    }
    BOOST_OUTCOME_TRY(tensors.rename, renamed_tensors(model, changes));
    BOOST_OUTCOME_TRY(model, make_metadata_stage(std::move(changes))->apply(std::move(model)));
    if (!tensors.empty()) {
      if (before.files.size() > 1)
        return usage_error(fmt::format("{} is in {} shards, whose tensors an edit does not change", quoted_name(path_),
                                       before.files.size()),
                           "merge them first, with `ggufmill merge`, or use a job with the stage `rename` and `shards: "
                           "source`");
      BOOST_OUTCOME_TRY(edited_.tensors, change_tensors(path_, tensors, options_.types, model));
      if (std::string warning = loading_warning(model); !warning.empty() && warning != loading_warning(before))
        model.warnings.push_back(std::move(warning));
    }
    edited_.warnings = std::exchange(model.warnings, {});
    return model;
  }

  // Removes the renamings of tensors from `changes`, and returns them.
  Result<std::vector<std::pair<std::string, std::string>>> renamed_tensors(const Model& model,
                                                                           MetadataOptions& changes) const {
    std::vector<std::pair<std::string, std::string>> tensors, keys;
    std::vector<std::string> names;
    for (const Tensor& tensor : model.tensors) names.push_back(tensor.name);
    for (const MetadataEntry& entry : model.metadata.entries()) names.push_back(entry.key);
    for (auto& each : changes.rename) {
      const bool is_tensor = std::ranges::find(model.tensors, each.first, &Tensor::name) != model.tensors.end();
      if (is_tensor && model.metadata.find(each.first))
        return usage_error(
            fmt::format("{} has a key and a tensor named {}", quoted_name(path_), quoted_name(each.first)),
            "use a job with the stage `metadata` or `rename`");
      if (!is_tensor && !model.metadata.find(each.first)) {
        const std::string meant = did_you_mean(each.first, names);
        return usage_error(fmt::format("{}: {} has no key and no tensor {}", option_reference("rename"),
                                       quoted_name(path_), quoted_name(each.first)),
                           meant.empty() ? fmt::format("`ggufmill inspect {}` lists both", shell_word(path_))
                                         : fmt::format("did you mean {}?", quoted_name(meant)));
      }
      (is_tensor ? tensors : keys).push_back(std::move(each));
    }
    changes.rename = std::move(keys);
    return tensors;
  }

  Status check_changes() const {
    for (const MetadataChange& change : edited_.changes) {
      const std::string& key = change.new_key.empty() ? change.key : change.new_key;
      if (change.after && is_split_key(key))
        return usage_error(
            fmt::format("{} is about the shards of a model, which an edit does not change", quoted_name(key)),
            "`ggufmill split` and `ggufmill merge` write it");
    }
    return ok();
  }

  // Removes the copy that a killed edit was writing. Keeps it if it may belong to somebody else or a process has it
  // open.
  Status remove_leftover() const {
    if (options_.dry_run) return ok();
    const std::string left = temporary_path(path_, kIdentity);
    BOOST_OUTCOME_TRY(const FoundFile there, open_own(kCurrentFolder, left, kOpenReadWrite, path_));
    if (!there.file || !try_lock(there.file.get(), Lock::kExclusive)) return ok();
    if (!remove_file(kCurrentFolder, left) && errno != ENOENT)
      return io_error(left, "remove the leftover file of an earlier edit", errno);
    return ok();
  }

  // Restores the header from the backup of an interrupted edit.
  Status restore() {
    if (!is_file(backup_)) return ok();
    if (options_.dry_run)
      return Error{ExitCode::kTransient, path_, "an earlier edit of this file was interrupted", "",
                   fmt::format("any edit without {} undoes it first", option_reference("dry_run"))};
    BOOST_OUTCOME_TRY(const std::string header, read_copy(backup_, owner_));
    BOOST_OUTCOME_TRY(write_beginning(path_, header));
    edited_.restored = true;
    return remove_backup();
  }

  Status remove_backup() const {
    std::error_code error;
    fs::remove(backup_, error);
    if (error) return io_error(backup_, "remove the header backup", error.value());
    return ok();
  }

  void list_changes(const Metadata& before, const Metadata& after) {
    std::set<std::string> done;  // new names
    for (const MetadataEntry& entry : before.entries()) {
      const auto& renames = options_.changes.rename;
      const auto renamed = std::ranges::find(renames, entry.key, &std::pair<std::string, std::string>::first);
      const std::string& key = renamed == renames.end() || !after.find(renamed->second) ? entry.key : renamed->second;
      const MetadataValue* now = after.find(key);
      done.insert(key);
      if (now && *now == entry.value && key == entry.key) continue;
      edited_.changes.push_back(
          {entry.key, key == entry.key ? std::string() : key, entry.value, now ? std::optional(*now) : std::nullopt});
    }
    for (const MetadataEntry& entry : after.entries())
      if (!done.contains(entry.key)) edited_.changes.push_back({entry.key, {}, {}, entry.value});
  }

  // True if every tensor of the first file keeps its offset, so the new header has the same size.
  static bool stays(const Model& before, const Model& after, const OutputFile& file) {
    return file.bytes == before.files.front()->bytes && std::ranges::all_of(file.tensors, [&](const Placement& place) {
             const Extent* extent = after.tensors[place.tensor].expression->as_extent();
             return extent && extent->source == before.files.front() && extent->offset == place.offset;
           });
  }

  Status write_in_place(const Model& before, const OutputFile& file) const {
    BOOST_OUTCOME_TRY(const std::string old, read_beginning(path_, file.header.size()));
    BOOST_OUTCOME_TRY(ByteSource::open(*before.files.front(), IoMode::kCached));  // fails if the file has changed
    {
      const std::string copied = header_copy(old);
      BOOST_OUTCOME_TRY(const auto kept, AtomicFile::create(backup_, copied.size(), {}));
      BOOST_OUTCOME_TRY(kept->seal(std::as_bytes(std::span(copied)), 0));
    }
    BOOST_OUTCOME_TRY(write_beginning(path_, file.header));
    return remove_backup();
  }

  Status rewrite(const Model& after, const OutputFile& file) {
    AtomicFile::Options how;
    how.identity = kIdentity;
    how.overwrite = options_.output.empty() || options_.overwrite;
    std::map<const SourceFile*, std::shared_ptr<const InputFile>> sources;
    BOOST_OUTCOME_TRY(const auto to, AtomicFile::create(file.path, file.bytes, how));
    if (!to->warning().empty()) edited_.warnings.push_back(to->warning());
    std::uint64_t data = 0;
    for (const Placement& place : file.tensors) {
      const Extent& extent = after.tensors[place.tensor].expression->extent;
      std::shared_ptr<const InputFile>& from = sources[extent.source.get()];
      if (!from) {
        BOOST_OUTCOME_TRY(ByteSource::open(*extent.source, IoMode::kCached));  // fails if the file has changed
        BOOST_OUTCOME_TRY(from, InputFile::open(extent.source->path));
      }
      BOOST_OUTCOME_TRY(copy(*from, extent.offset, *to, place.offset, extent.bytes, options_.stop));
      data += extent.bytes;
    }
    for (const auto& [description, from] : sources) {
      BOOST_OUTCOME_TRY(from->check_unchanged());
    }
    if constexpr (!kReplacesOpenFiles) {
      sources.clear();
      lock_ = Descriptor();
    }
    return to->seal(std::as_bytes(std::span(file.header)), data);
  }

  const std::string& path_;
  const EditOptions& options_;
  Descriptor lock_;
  std::string backup_;
  bool has_other_names_ = false;
  std::uint64_t owner_ = 0;
  Edited edited_;
};

}  // namespace

std::string header_copy(const std::string& header) {
  CopyEnd end;
  end.bytes = header.size();
  end.hash = XXH3_64bits(header.data(), header.size());
  return header + std::string(reinterpret_cast<const char*>(&end), sizeof end);
}

Result<std::string> header_backup(const std::string& path) {
  FileStatus status;
  if (!get_status(kCurrentFolder, path, Links::kFollow, status))
    return input_error(path, fmt::format("cannot open the file: {}", std::strerror(errno)));
  const fs::path file = path;
  return (file.parent_path() / fmt::format(".{}.{}-{}.header", file.filename().string(), status.inode, status.bytes))
      .string();
}

std::vector<EditLeftover> edit_leftovers(const std::string& path) {
  std::vector<std::string> paths{temporary_path(path, kIdentity)};
  if (auto backup = is_address(path) ? Result<std::string>(path) : header_backup(path); backup)
    paths.push_back(std::move(backup).value());
  std::vector<EditLeftover> found;
  for (const std::string& left : paths) {
    FileStatus info;
    if (!is_address(path) && get_status(kCurrentFolder, left, Links::kNoFollow, info))
      found.push_back({left, info.bytes});
  }
  return found;
}

Result<Edited> edit_metadata(const std::string& path, const EditOptions& options) { return Edit(path, options).run(); }

Result<std::pair<std::string, std::string>> split_assignment(const std::string& text, const std::string& option,
                                                             const AssignmentShape& shape) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    return usage_error(fmt::format("{}: {} is not {}", option, quoted_name(text), shape.words),
                       fmt::format("for example {}", shape.example));
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

namespace {

// Returns the value for a message, cut to a few words.
std::string brief(const MetadataValue& value, std::size_t width = 60) {  // NOLINT(misc-no-recursion)
  const auto array = as_array(value);
  if (!array) return describe(value, width);
  std::string text;
  std::uint64_t items = 0;
  for (const MetadataValue& item : array_items(value, 8)) {
    const std::string shown = brief(item, width / 2);
    if (text.size() + shown.size() > width) break;
    text += (items++ == 0 ? "" : ", ") + shown;
  }
  if (items == array->count) return fmt::format("[{}]", text);
  return fmt::format("[{}{}...] of {} items", text, items == 0 ? "" : ", ", array->count);
}

std::string with_type(const MetadataValue& value) {
  return fmt::format("{} ({})", brief(value), full_type_name(value));
}

// Splits "KEY:TYPE". The type is empty if there is none.
std::pair<std::string, std::string> split_type(const std::string& key) {
  const std::size_t at = key.rfind(':');
  if (at == std::string::npos) return {key, {}};
  return {key.substr(0, at), key.substr(at + 1)};
}

}  // namespace

std::string describe(const MetadataChange& change) {
  const auto& [key, new_key, before, after] = change;
  if (!before) return fmt::format("adds {}: {}", key, with_type(*after));
  if (!after) return fmt::format("removes {}: {}", key, with_type(*before));
  const std::string what = new_key.empty() ? "changes " + key : fmt::format("renames {} to {}", key, new_key);
  if (*before == *after) return fmt::format("{}: {}", what, with_type(*after));
  const bool keeps_type = full_type_name(*before) == full_type_name(*after);
  return fmt::format("{}: {} -> {}", what, keeps_type ? brief(*before) : with_type(*before), with_type(*after));
}

Result<MetadataSetting> parse_setting(const std::string& key, const std::string& value) {
  WrittenValue written;
  written.text = value;
  written.may_be_list = true;
  return setting_of(key, std::move(written));
}

Result<MetadataSetting> setting_of(const std::string& key, WrittenValue written) {
  auto [name, type] = split_type(key);
  if (name.size() == key.size()) return MetadataSetting{std::move(name), std::move(written)};
  auto typed = value_of(written, type);
  if (typed) return MetadataSetting{std::move(name), std::move(typed).value()};
  Error error = std::move(typed).error();
  error.what = fmt::format("{}: {}", name, error.what);
  return error;
}

Result<MetadataSetting> file_setting(const std::string& key, const std::string& path) {
  auto [name, type] = split_type(key);
  return MetadataSetting{std::move(name), ValueFile{path, {}, std::move(type)}};
}

}  // namespace ggufmill
