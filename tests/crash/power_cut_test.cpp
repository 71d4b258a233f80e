// Simulates power cuts: the system calls of a run are recorded, and for every prefix of them a folder is created as a
// disk may look afterwards. Synced data is present; of the rest nothing, everything, or some part. The next run must
// always end with the correct files.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <span>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

// A successful call that changes something. Files are identified by their inodes.
struct Change {
  enum class Kind { kCreate, kWrite, kSize, kSync, kSyncFolder, kRename, kExchange, kRemove } kind;
  std::uint64_t file = 0;
  std::uint64_t offset = 0;  // or the new size
  std::string bytes;         // data written
  std::string name, to;      // names in the folder
};

std::mutex mutex;
std::vector<Change> recorded;                            // guarded by the mutex
std::map<std::uint64_t, std::uint64_t> original_inodes;  // maps inodes of a replay to those of the recording

std::uint64_t inode_of(int descriptor) {
  FileStatus info;
  kernel_calls().status(descriptor, &info);
  return info.inode;
}

std::string name_of(const char* path) { return fs::path(path).filename(); }

void record(Change operation) {
  const std::lock_guard lock(mutex);
  recorded.push_back(std::move(operation));
}

SystemCalls recording_calls() {
  using Kind = Change::Kind;
  SystemCalls calls = kernel_calls();
  calls.open = [](int folder, const char* path, unsigned flags, unsigned mode) {
    FileStatus before;
    const bool was_there = kernel_calls().status_at(folder, path, Links::kNoFollow, &before) == 0;
    const int descriptor = kernel_calls().open(folder, path, flags, mode);
    if (descriptor >= 0 && (flags & kOpenCreate) && !was_there)
      record({Kind::kCreate, inode_of(descriptor), 0, {}, name_of(path), {}});
    return descriptor;
  };
  calls.write = [](int descriptor, const void* from, std::size_t bytes, std::uint64_t offset) {
    const std::int64_t done = kernel_calls().write(descriptor, from, bytes, offset);
    if (done > 0)
      record({Kind::kWrite,
              inode_of(descriptor),
              offset,
              std::string(static_cast<const char*>(from), static_cast<std::size_t>(done)),
              {},
              {}});
    return done;
  };
  calls.reserve = [](int descriptor, std::uint64_t offset, std::uint64_t bytes) {
    const int result = kernel_calls().reserve(descriptor, offset, bytes);
    if (result == 0) record({Kind::kSize, inode_of(descriptor), offset + bytes, {}, {}, {}});
    return result;
  };
  calls.resize = [](int descriptor, std::uint64_t bytes) {
    const int result = kernel_calls().resize(descriptor, bytes);
    if (result == 0) record({Kind::kSize, inode_of(descriptor), bytes, {}, {}, {}});
    return result;
  };
  calls.sync = [](int descriptor) {
    FileStatus info;
    kernel_calls().status(descriptor, &info);
    record({info.is_folder() ? Kind::kSyncFolder : Kind::kSync, info.inode, 0, {}, {}, {}});
    return kernel_calls().sync(descriptor);
  };
  calls.rename = [](int from_folder, const char* from, int to_folder, const char* to, Rename how) {
    const int result = kernel_calls().rename(from_folder, from, to_folder, to, how);
    if (result == 0)
      record({how == Rename::kExchange ? Kind::kExchange : Kind::kRename, 0, 0, {}, name_of(from), name_of(to)});
    return result;
  };
  calls.remove = [](int folder, const char* path) {
    const int result = kernel_calls().remove(folder, path);
    if (result == 0) record({Kind::kRemove, 0, 0, {}, name_of(path), {}});
    return result;
  };
  calls.remove_folder = [](int folder, const char* path) {
    const int result = kernel_calls().remove_folder(folder, path);
    if (result == 0) record({Kind::kRemove, 0, 0, {}, name_of(path), {}});
    return result;
  };
  return calls;
}

// Reports the recorded inodes during a replay, so that files keep their identity.
SystemCalls replayed_calls() {
  SystemCalls calls = kernel_calls();
  static constexpr auto translate = [](FileStatus* info) {
    const auto found = original_inodes.find(info->inode);
    if (found != original_inodes.end()) info->inode = found->second;
  };
  calls.status = [](int descriptor, FileStatus* out) {
    const int result = kernel_calls().status(descriptor, out);
    if (result == 0) translate(out);
    return result;
  };
  calls.status_at = [](int folder, const char* path, Links links, FileStatus* out) {
    const int result = kernel_calls().status_at(folder, path, links, out);
    if (result == 0) translate(out);
    return result;
  };
  return calls;
}

struct UsedCalls {
  explicit UsedCalls(const SystemCalls& calls) : calls_(calls) { set_system_calls(&calls_); }
  ~UsedCalls() { set_system_calls(nullptr); }
  UsedCalls(const UsedCalls&) = delete;
  UsedCalls& operator=(const UsedCalls&) = delete;

 private:
  const SystemCalls calls_;
};

// A folder as stored on a disk.
struct Disk {
  std::map<std::string, std::uint64_t> names;
  std::map<std::uint64_t, std::string> files;

  void apply(const Change& operation) {
    using Kind = Change::Kind;
    std::string& text = files[operation.file];
    switch (operation.kind) {
      case Kind::kCreate:
        names[operation.name] = operation.file;
        break;
      case Kind::kWrite:
        text.resize(std::max<std::size_t>(text.size(), operation.offset + operation.bytes.size()));
        text.replace(operation.offset, operation.bytes.size(), operation.bytes);
        break;
      case Kind::kSize:
        text.resize(operation.offset);
        break;
      case Kind::kRename:
        names[operation.to] = names.at(operation.name);
        names.erase(operation.name);
        break;
      case Kind::kExchange:
        std::swap(names.at(operation.name), names.at(operation.to));
        break;
      case Kind::kRemove:
        names.erase(operation.name);
        break;
      case Kind::kSync:
      case Kind::kSyncFolder:
        break;
    }
  }
};

bool is_of_names(const Change& operation) {
  using Kind = Change::Kind;
  return operation.kind == Kind::kCreate || operation.kind == Kind::kRename || operation.kind == Kind::kExchange ||
         operation.kind == Kind::kRemove;
}

enum class Lost { kAllUnsynced, kUnsyncedBytes, kSome };

// Returns the content of the disk after a power cut that follows the first `count` operations. Changes of names become
// durable in order, written bytes in any order.
Disk after_power_cut(const Disk& before, std::span<const Change> operations, Lost lost, std::mt19937& random) {
  std::vector<bool> durable(operations.size());
  std::size_t names = 0;  // all changes of names before this index are durable
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].kind == Change::Kind::kSyncFolder) names = i;
    if (operations[i].kind != Change::Kind::kSync) continue;
    for (std::size_t j = 0; j < i; ++j)
      if (!is_of_names(operations[j]) && operations[j].file == operations[i].file) durable[j] = true;
  }
  if (lost == Lost::kUnsyncedBytes) names = operations.size();
  if (lost == Lost::kSome) names += random() % (operations.size() - names + 1);
  Disk disk = before;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const bool happens = is_of_names(operations[i]) ? i < names : durable[i] || (lost == Lost::kSome && random() % 2);
    if (happens || operations[i].kind == Change::Kind::kSize) disk.apply(operations[i]);
  }
  return disk;
}

std::string model_bytes(float first) {
  GgufBuilder model;
  for (int i = 0; i < 6; ++i) model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 8});
  for (std::size_t t = 0; t < model.tensors.size(); ++t)
    for (std::size_t i = 0; i < model.tensors[t].data.size() / 4; ++i) {
      const float value = first + static_cast<float>(t) * 0.01f + static_cast<float>(i * 7 % 255) * 0.001f;
      std::memcpy(model.tensors[t].data.data() + 4 * i, &value, sizeof value);
    }
  return model.build();
}

}  // namespace

TEST_CASE("after a power cut at any point, the next run makes the right files") {
  const bool overwrite = GENERATE(false, true);
  const TempDir folder;
  const std::string out = folder.file("out");
  write_text(folder.file("model.gguf"), model_bytes(1));
  const Context context = Context::create({{}, "reference"}).value();
  const auto job =
      context.parse_job(fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n"
                                    "  - {{gguf: {{path: {}/a.gguf, shard_tensors: 3}}, quantize: {{type: Q8_0}}}}\n"
                                    "  - {{gguf: {}/b.gguf, quantize: {{type: Q4_0}}}}\n",
                                    folder.file("model.gguf"), out, out),
                        "job.yaml");
  REQUIRE(job);
  const Plan plan = context.plan(job.value()).value();
  RunOptions options;
  options.engine = EngineKind::kSimple;
  options.overwrite = overwrite;
  EngineOptions engine = engine_options(options);
  engine.slab_bytes = 32 << 10;
  std::vector<std::string> paths;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) paths.push_back(file.path);

  Disk before;
  const auto put_old = [&] {
    fs::remove_all(out);
    fs::create_directory(out);
    if (!overwrite) return;
    for (const std::string& path : paths) write_text(path, "old");
  };
  put_old();
  for (const std::string& name : names_in(out)) {
    const std::uint64_t inode = status_of(out + "/" + name).inode;
    before.names[name] = inode;
    before.files[inode] = "old";
  }
  recorded.clear();
  {
    const UsedCalls recording(recording_calls());
    REQUIRE(run_resumably(plan, context.kernels(), options, engine));
  }
  const std::vector<Change> operations = std::move(recorded);
  std::map<std::string, std::string> right;
  for (const std::string& path : paths) right[path] = read_text(path);
  REQUIRE(operations.size() > 40);

  std::mt19937 random(3);
  std::size_t points = 0, kept = 0;
  for (std::size_t count = 0; count <= operations.size(); ++count)
    for (const Lost lost : {Lost::kAllUnsynced, Lost::kUnsyncedBytes, Lost::kSome, Lost::kSome}) {
      const Disk disk = after_power_cut(before, std::span(operations).first(count), lost, random);
      fs::remove_all(out);
      fs::create_directory(out);
      original_inodes.clear();
      for (const auto& [name, file] : disk.names) {
        const auto text = disk.files.find(file);
        write_text(out + "/" + name, text == disk.files.end() ? "" : text->second);
        original_inodes[status_of(out + "/" + name).inode] = file;
      }
      CAPTURE(overwrite, count, static_cast<int>(lost));
      for (const std::string& path : paths)
        if (fs::exists(path)) CHECK((read_text(path) == right.at(path) || (overwrite && read_text(path) == "old")));
      const bool all_there = std::ranges::all_of(
          paths, [&](const std::string& path) { return fs::exists(path) && read_text(path) == right.at(path); });
      {
        const UsedCalls replayed(replayed_calls());
        const auto report = run_resumably(plan, context.kernels(), options, engine);
        if (report) kept += report.value().units_kept;
        CHECK((report || (all_there && report.error().code == ExitCode::kUsage)));  // already finished
      }
      for (const std::string& path : paths) CHECK((read_text(path) == right.at(path)));
      ++points;
    }
  CHECK(kept > 0);
  std::cout << points << " points, " << kept << " units kept\n";
}
