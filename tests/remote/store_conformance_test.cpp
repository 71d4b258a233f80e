// Tests the promises of every kind of output store (output_store.h, store_scheme.h). A new kind of store is one more
// `Kind`.

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/remote_stores.h"
#include "pipeline/io/store_scheme.h"
#include "tests/pipeline/memory_store.h"
#include "tests/remote/test_server.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

constexpr const char* kIdentity = "0123456789abcdef0123456789abcdef";
constexpr std::uint64_t kRow = 4096, kChunk = 16 * kRow;
constexpr std::size_t kHeader = 1000;

// A kind of store, with a place for files of its own.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual const StoreScheme& scheme() const = 0;
  virtual std::string path(std::size_t file) const = 0;  // of an output
  virtual std::optional<std::string> published(std::size_t file) const = 0;
  // Makes an output exist before the run.
  virtual void put(std::size_t file, const std::string& text) = 0;
  // Returns what runs have left besides published files.
  virtual std::vector<std::string> leftovers() const = 0;
  // Calls `action`, in which the k-th call or request fails for good; returns false if there were fewer.
  virtual bool with_fault(int k, const std::function<void()>& action) = 0;
  bool keeps_files() const { return !scheme().journal_path(path(0), kIdentity).empty(); }
};

std::string name_of(std::size_t file) { return fmt::format("{}.bin", file); }
bool is_output(const std::string& name) { return name == name_of(0) || name == name_of(1); }

std::optional<std::string> text_at(const std::string& path) {
  return fs::exists(path) ? std::optional(read_text(path)) : std::nullopt;
}

class LocalKind final : public Kind {
 public:
  const StoreScheme& scheme() const override { return local_store(); }
  std::string path(std::size_t file) const override { return folder_.file(name_of(file)); }
  std::optional<std::string> published(std::size_t file) const override { return text_at(path(file)); }
  void put(std::size_t file, const std::string& text) override { write_text(path(file), text); }
  std::vector<std::string> leftovers() const override {
    std::vector<std::string> names = names_in(folder_.path());
    std::erase_if(names, is_output);
    return names;
  }
  bool with_fault(int k, const std::function<void()>& action) override {
    const FaultAt fault(k, EIO);
    action();
    return fault.reached();
  }

 private:
  TempDir folder_;
};

class MemoryKind final : public Kind {
 public:
  const StoreScheme& scheme() const override { return store_; }
  std::string path(std::size_t file) const override { return "memory://" + name_of(file); }
  std::optional<std::string> published(std::size_t file) const override {
    const auto files = store_.files();
    const auto found = files.find(path(file));
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  void put(std::size_t file, const std::string&) override {
    auto store = store_.create({{path(file), "x", 1}}, {}).value();
    REQUIRE(store->seal({}));
    REQUIRE(store->publish());
  }
  std::vector<std::string> leftovers() const override { return {}; }
  bool with_fault(int, const std::function<void()>& action) override {
    action();
    return false;  // it calls nothing that can fail
  }

 private:
  testing::MemoryStore store_;
};

// A store on the tests' server.
class ServedKind : public Kind {
 public:
  ServedKind() {
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"AWS_ENDPOINT_URL_S3", server_.host()},
                                            {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
                                            {"AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
                                            {"HF_ENDPOINT", server_.host()},
                                            {"HF_TOKEN", "hf_sEcReTtOkEnOfTheTest"},
                                            {"XDG_STATE_HOME", state_.path()},
                                            {"no_proxy", "*"}})
      environment_.set(name, value.c_str());
  }
  bool with_fault(int k, const std::function<void()>& action) override {
    fs::remove(server_.file("happened"));
    wait_for_later_time(server_.file("log.jsonl"));  // the server sees a new fault by the file's time
    write_text(server_.file("fault"), fmt::format("denied {}", k));
    action();
    fs::remove(server_.file("fault"));
    return fs::exists(server_.file("happened"));
  }
  std::vector<std::string> leftovers() const override {
    std::vector<std::string> names;
    if (const fs::path uploads = state_.file("ggufmill/uploads"); fs::exists(uploads)) names = names_in(uploads);
    if (const auto open = text_at(server_.file("uploads.txt")); open && !open->empty()) names.push_back(*open);
    return names;
  }

 protected:
  TestServer server_;

 private:
  TempDir state_;
  Environment environment_;
};

class BucketKind final : public ServedKind {
 public:
  BucketKind() { fs::create_directories(server_.file("s3/models")); }
  const StoreScheme& scheme() const override { return remote::s3_store(); }
  std::string path(std::size_t file) const override { return "s3://models/" + name_of(file); }
  std::optional<std::string> published(std::size_t file) const override {
    return text_at(server_.file("s3/models/" + name_of(file)));
  }
  void put(std::size_t file, const std::string& text) override {
    write_text(server_.file("s3/models/" + name_of(file)), text);
  }
};

class HubKind final : public ServedKind {
 public:
  HubKind() {
    fs::create_directories(server_.file("hub/org/model/first"));
    write_text(server_.file("hub/org/model/refs.json"), R"({"main": "first"})");
  }
  const StoreScheme& scheme() const override { return remote::hub_store(); }
  std::string path(std::size_t file) const override { return "hf://org/model/" + name_of(file); }
  std::optional<std::string> published(std::size_t file) const override { return text_at(commit() + name_of(file)); }
  void put(std::size_t file, const std::string& text) override { write_text(commit() + name_of(file), text); }

 private:
  std::string commit() const {
    const std::string refs = read_text(server_.file("hub/org/model/refs.json"));
    const std::size_t from = refs.find(": \"") + 3;
    return server_.file("hub/org/model/" + refs.substr(from, refs.find('"', from) - from)) + "/";
  }
};

// Two files: one of several parts of an upload, and a small one.
class Files {
 public:
  Files() {
    for (const std::uint64_t rows : {2600, 40}) {
      std::string text(kHeader, 'h');
      for (std::uint64_t i = 0; i < rows * kRow; ++i) text += static_cast<char>((i * 2654435761U + rows) >> 13);
      texts.push_back(std::move(text));
    }
  }
  std::vector<StoredFile> of(const Kind& kind) const {
    std::vector<StoredFile> files;
    for (std::size_t i = 0; i < texts.size(); ++i) files.push_back({kind.path(i), header_, texts[i].size()});
    return files;
  }
  StoreOptions options() const {
    StoreOptions options;
    options.identity = kIdentity;
    std::uint64_t row = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::uint64_t bytes = texts[i].size() - kHeader;
      options.writes.push_back({i, kHeader, bytes, row, bytes / kRow});
      row += bytes / kRow;
    }
    return options;
  }
  struct Chunk {
    std::size_t file;
    std::uint64_t offset, bytes;
  };
  // In the order in which a run writes them.
  std::vector<Chunk> chunks() const {
    std::vector<Chunk> all;
    for (std::size_t i = 0; i < texts.size(); ++i)
      for (std::uint64_t at = kHeader; at < texts[i].size(); at += kChunk)
        all.push_back({i, at, std::min(kChunk, texts[i].size() - at)});
    return all;
  }
  // Writes the chunks from several threads; returns the first error.
  Status write(OutputStore& store, const std::vector<Chunk>& chunks) const {
    std::atomic<std::size_t> next{0};
    std::vector<Status> results(4, ok());
    {
      std::vector<std::jthread> threads;
      for (Status& result : results)
        threads.emplace_back([&] {
          for (std::size_t i = next++; i < chunks.size() && result; i = next++)
            result = store.write(chunks[i].file, chunks[i].offset, bytes_of(chunks[i]));
        });
    }
    for (Status& result : results)
      if (!result) return std::move(result);
    return ok();
  }
  std::vector<std::uint64_t> count(const std::vector<Chunk>& chunks) const {
    std::vector<std::uint64_t> counts(texts.size());
    for (const Chunk& chunk : chunks) counts[chunk.file] += chunk.bytes;
    return counts;
  }
  // Writes the chunks, seals, and publishes.
  Status complete(OutputStore& store, const std::vector<Chunk>& chunks) const {
    BOOST_OUTCOME_TRY(write(store, chunks));
    BOOST_OUTCOME_TRY(store.seal(count(chunks)));
    return store.publish();
  }
  std::span<const std::byte> bytes_of(const Chunk& chunk) const {
    return as_bytes(std::string_view(texts[chunk.file]).substr(chunk.offset, chunk.bytes));
  }
  // Returns the chunks that an attached store does not have yet.
  std::vector<Chunk> missing_in(const OutputStore& store) const {
    std::vector<Chunk> missing;
    for (const Chunk& chunk : chunks()) {
      std::vector<std::byte> bytes(chunk.bytes);
      const bool has = store.is_readable() ? bool(store.read(chunk.file, chunk.offset, bytes)) &&
                                                 std::ranges::equal(bytes, bytes_of(chunk))
                                           : store.holds(chunk.file, chunk.offset, chunk.bytes);
      if (!has) missing.push_back(chunk);
    }
    return missing;
  }
  bool are_published(const Kind& kind) const {
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (kind.published(i) != texts[i]) return false;
    return true;
  }

  std::vector<std::string> texts;

 private:
  std::string header_ = std::string(kHeader, 'h');
};

std::unique_ptr<Kind> make_kind(const std::string& name) {
  if (name == "local") return std::make_unique<LocalKind>();
  if (name == "memory") return std::make_unique<MemoryKind>();
  if (name == "bucket") return std::make_unique<BucketKind>();
  return std::make_unique<HubKind>();
}

const Files& files() {
  static const Files one;
  return one;
}

std::unique_ptr<OutputStore> created(const Kind& kind, const StoreOptions& options = files().options()) {
  auto store = kind.scheme().create(files().of(kind), options);
  if (!store) FAIL(render(store.error()));
  return std::move(store.value());
}

void check(const Status& status) {
  if (!status) FAIL(render(status.error()));
}

#define FOR_EACH_KIND                                                                                  \
  const std::string name = GENERATE("local", "memory", "bucket", "hub");                               \
  if (!has_server() && (name == "bucket" || name == "hub")) GGUFMILL_SKIP("no Python for the server"); \
  CAPTURE(name);                                                                                       \
  const std::unique_ptr<Kind> kind = make_kind(name)

}  // namespace

TEST_CASE("store: files appear complete when they are published, and not before") {
  FOR_EACH_KIND;
  auto store = created(*kind);
  check(files().write(*store, files().chunks()));
  REQUIRE(store->seal(files().count(files().chunks())));
  CHECK_FALSE((kind->published(0) || kind->published(1)));
  check(store->publish());
  CHECK(files().are_published(*kind));
  store.reset();
  CHECK(kind->leftovers().empty());
}

TEST_CASE("store: an output that exists is replaced only on request") {
  FOR_EACH_KIND;
  kind->put(1, "x");
  const std::optional<std::string> before = kind->published(1);
  const Status refused = kind->scheme().check_target(kind->path(1), false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(kind->published(1) == before);
  CHECK(kind->scheme().check_target(kind->path(1), true));
  CHECK(kind->scheme().check_target(kind->path(0), false));
  StoreOptions options = files().options();
  options.overwrite = true;
  auto store = created(*kind, options);
  check(files().complete(*store, files().chunks()));
  CHECK(files().are_published(*kind));
}

TEST_CASE("store: a run that ends before it publishes leaves nothing") {
  FOR_EACH_KIND;
  const bool sealed = GENERATE(false, true);
  CAPTURE(sealed);
  auto store = created(*kind);
  check(files().write(*store, files().chunks()));
  if (sealed) REQUIRE(store->seal(files().count(files().chunks())));
  store.reset();
  CHECK_FALSE((kind->published(0) || kind->published(1)));
  CHECK(kind->leftovers().empty());
}

TEST_CASE("store: a run that was left resumes with what the store has") {
  FOR_EACH_KIND;
  if (!kind->keeps_files()) return;
  const auto all = files().chunks();
  const std::vector<Files::Chunk> first(all.begin(), all.begin() + 160);  // of 166
  {
    auto store = created(*kind);
    check(files().write(*store, first));
    check(store->leave());
  }
  const StoredFile output = files().of(*kind)[0];
  CHECK_FALSE(kind->published(0));
  CHECK(kind->scheme().why_not_attachable(output, kIdentity).empty());
  CHECK_FALSE(kind->scheme().why_not_attachable(output, "another plan").empty());
  auto store = kind->scheme().attach(files().of(*kind), files().options());
  if (!store) FAIL(render(store.error()));
  const auto missing = files().missing_in(*store.value());
  CHECK(missing.size() < all.size());
  CHECK(missing.size() >= all.size() - first.size());
  check(files().complete(*store.value(), missing));
  CHECK(files().are_published(*kind));
  store.value().reset();
  CHECK(kind->leftovers().empty());
}

TEST_CASE("store: what a run has left can be listed and removed") {
  FOR_EACH_KIND;
  if (!kind->keeps_files()) return;
  {
    auto store = created(*kind);
    check(files().write(*store, files().chunks()));
    check(store->leave());
  }
  REQUIRE_FALSE(kind->leftovers().empty());
  const std::vector<std::string> outputs{kind->path(0), kind->path(1)}, endings{kIdentity};
  const auto unfinished = kind->scheme().find_unfinished(outputs, endings);
  CHECK_FALSE(unfinished.empty());
  for (const UnfinishedFile& file : unfinished) {
    CHECK_FALSE(file.is_in_use);
    check(kind->scheme().remove_unfinished(file.path));
    check(kind->scheme().remove_unfinished(file.path));  // nothing to do
  }
  CHECK(kind->leftovers().empty());
}

TEST_CASE("store: sealed files of a run that was killed are published later") {
  FOR_EACH_KIND;
  if (!kind->keeps_files()) return;
  std::vector<FileId> ids;
  {
    auto store = created(*kind);
    check(files().write(*store, files().chunks()));
    ids = store->seal(files().count(files().chunks())).value();
    store->keep();
  }
  const auto outputs = files().of(*kind);
  CHECK(kind->scheme().find_sealed(outputs[0], kIdentity, ids[0]) == SealedFile::kUnfinished);
  check(kind->scheme().finish_publishing(outputs, ids, files().options()));
  CHECK(files().are_published(*kind));
  CHECK(kind->leftovers().empty());
}

TEST_CASE("store: bytes that are counted wrong are a defect") {
  FOR_EACH_KIND;
  if (name == "memory") return;  // counts nothing
  auto store = created(*kind);
  check(files().write(*store, files().chunks()));
  auto wrong = files().count(files().chunks());
  wrong[0] -= 1;
  const auto sealed = store->seal(wrong);
  REQUIRE_FALSE(sealed);
  CHECK(sealed.error().code == ExitCode::kInternal);
}

// After each failed call the outputs are complete or missing, nothing else is left once the store is dropped (but for
// the file whose removal failed, and for uploads of a run that had begun to publish), and the same run completes with
// what was kept, or from the beginning.
TEST_CASE("store: a run survives the failure of each of its calls") {
  FOR_EACH_KIND;
  const bool keeps = GENERATE(false, true);
  CAPTURE(keeps);
  int k = 1;
  for (bool reached = true; reached && k < 400; k += k < 40 ? 1 : 7) {
    CAPTURE(k);
    const std::unique_ptr<Kind> own = make_kind(name);
    if (keeps && !own->keeps_files()) return;
    bool completed = false;
    reached = own->with_fault(k, [&] {
      auto store = own->scheme().create(files().of(*own), files().options());
      if (!store) return;
      const Status status = files().complete(*store.value(), files().chunks());
      completed = bool(status);
      if (!status) CHECK(status.error().code != ExitCode::kInternal);
      if (!status && keeps) store.value()->keep();
    });
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto text = own->published(i)) CHECK(*text == files().texts[i]);
    if (completed) CHECK(files().are_published(*own));
    const bool is_publishing = own->published(0) || own->published(1);
    if (!keeps && !is_publishing) CHECK(own->leftovers().size() <= 1);
    if (completed) continue;
    const bool attaches = keeps && own->scheme().why_not_attachable(files().of(*own)[0], kIdentity).empty() &&
                          own->scheme().why_not_attachable(files().of(*own)[1], kIdentity).empty();
    StoreOptions options = files().options();
    options.overwrite = true;  // one of the files may have appeared
    auto store =
        attaches ? own->scheme().attach(files().of(*own), options) : own->scheme().create(files().of(*own), options);
    if (!store) FAIL(render(store.error()));
    check(files().complete(*store.value(), attaches ? files().missing_in(*store.value()) : files().chunks()));
    CHECK(files().are_published(*own));
    store.value().reset();
    CHECK(own->leftovers().empty());
  }
  CHECK(k > (name == "memory" ? 1 : 5));
}
