#include "pipeline/api/edit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/temporary_file.h"
#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

// A file with a string, a number and one tensor.
class File {
 public:
  File() {
    GgufBuilder builder;
    builder.metadata.push_back({"general.name", metadata_string("a model")});
    builder.metadata.push_back({"llama.context_length", metadata_unsigned(MetadataType::kUint32, 2048)});
    builder.add_tensor("token_embd.weight", {32, 4});
    for (std::size_t i = 0; i < 512; ++i) builder.tensors[0].data[i] = static_cast<char>(i);
    builder.write(path());
    before_ = read_text(path());
  }

  std::string path() const { return folder_.file("model.gguf"); }
  std::string other(const std::string& name) const { return folder_.file(name); }
  std::string backup() const { return header_backup(path()).value(); }
  const std::string& before() const { return before_; }
  std::string data() const { return before_.substr(before_.size() - 512); }

  Result<Edited> set(const std::string& key, const std::string& value, EditOptions options = {}) const {
    WrittenValue written;
    written.text = value;
    options.changes.set.push_back({key, written});
    return edit_metadata(path(), options);
  }
  std::string value(const std::string& key) const { return describe(*read_gguf(path()).value().metadata.find(key)); }

 private:
  TempDir folder_;
  std::string before_;
};

}  // namespace

TEST_CASE("a value of the same size is changed in place, and nothing else is") {
  const File file;
  const auto edited = file.set("llama.context_length", "4096");
  REQUIRE(edited);
  CHECK(edited.value().in_place);
  REQUIRE(edited.value().changes.size() == 1);
  CHECK(describe(edited.value().changes[0]) == "changes llama.context_length: 2048 -> 4096 (uint32)");
  CHECK(file.value("llama.context_length") == "4096");
  const std::string after = read_text(file.path());
  REQUIRE(after.size() == file.before().size());
  CHECK(after.substr(after.size() - 512) == file.data());
  CHECK_FALSE(fs::exists(file.backup()));
}

TEST_CASE("a header that grows makes a new file, whose weights are those of the old one") {
  const File file;
  const auto edited = file.set("general.name", std::string(200, 'x'));
  REQUIRE(edited);
  CHECK_FALSE(edited.value().in_place);
  const std::string after = read_text(file.path());
  CHECK(after.size() > file.before().size());
  CHECK(after.substr(after.size() - 512) == file.data());
  CHECK(file.value("general.name").size() > 50);
}

TEST_CASE("a file with several hard links is not edited in place") {
  const File file;
  fs::create_hard_link(file.path(), file.other("same.gguf"));
  REQUIRE(file.set("llama.context_length", "4096"));
  CHECK(read_text(file.other("same.gguf")) == file.before());
  CHECK(file.value("llama.context_length") == "4096");
}

TEST_CASE("a symbolic link is refused") {
  const File file;
  fs::create_symlink(file.path(), file.other("link.gguf"));
  EditOptions options;
  options.changes.remove = {"general.name"};
  const auto edited = edit_metadata(file.other("link.gguf"), options);
  REQUIRE_FALSE(edited);
  CHECK(edited.error().code == ExitCode::kUsage);
  CHECK(read_text(file.path()) == file.before());
}

TEST_CASE("writing another output leaves the file unchanged and does not overwrite without --overwrite") {
  const File file;
  EditOptions options;
  options.output = file.other("new.gguf");
  REQUIRE(file.set("llama.context_length", "4096", options));
  CHECK(read_text(file.path()) == file.before());
  CHECK(read_gguf(options.output).value().tensors.size() == 1);
  const auto again = file.set("llama.context_length", "8192", options);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ExitCode::kUsage);
}

TEST_CASE("another output is written even if nothing changes") {
  const File file;
  EditOptions options;
  options.output = file.other("new.gguf");
  REQUIRE(file.set("llama.context_length", "2048", options));
  CHECK(read_text(options.output) == file.before());
}

TEST_CASE("keys are renamed in place, and removed") {
  const File file;
  EditOptions options;
  options.changes.rename = {{"general.name", "general.title"}};
  options.changes.remove = {"llama.context_length", "no.such.key"};
  const auto edited = edit_metadata(file.path(), options);
  REQUIRE(edited);
  CHECK(edited.value().warnings.size() == 1);
  const Model model = read_gguf(file.path()).value();
  REQUIRE(model.metadata.entries().size() == 1);
  CHECK(model.metadata.entries()[0].key == "general.title");
}

TEST_CASE("without a change, and in a dry run, nothing is written") {
  const File file;
  const auto same = file.set("llama.context_length", "2048");
  REQUIRE(same);
  CHECK(same.value().changes.empty());
  EditOptions options;
  options.dry_run = true;
  REQUIRE(file.set("general.name", "another name that is longer", options));
  CHECK(read_text(file.path()) == file.before());
}

TEST_CASE("every change is described with its values and types") {
  const MetadataValue one = metadata_unsigned(MetadataType::kUint32, 1),
                      two = metadata_unsigned(MetadataType::kUint64, 2);
  std::vector<MetadataValue> many(100, metadata_string("a word"));
  CHECK(describe(MetadataChange{"a", {}, one, two}) == "changes a: 1 (uint32) -> 2 (uint64)");
  CHECK(describe(MetadataChange{"a", {}, {}, one}) == "adds a: 1 (uint32)");
  CHECK(describe(MetadataChange{"a", {}, one, {}}) == "removes a: 1 (uint32)");
  CHECK(describe(MetadataChange{"a", "b", one, one}) == "renames a to b: 1 (uint32)");
  CHECK(describe(MetadataChange{"a", "b", one, two}) == "renames a to b: 1 (uint32) -> 2 (uint64)");
  many.resize(2);
  CHECK(describe(MetadataChange{"a", {}, {}, metadata_array(MetadataType::kString, many)}) ==
        R"(adds a: ["a word", "a word"] (string[]))");
  many.resize(100, metadata_string("a word"));
  CHECK(describe(MetadataChange{"a", {}, {}, metadata_array(MetadataType::kString, many)}) ==
        R"(adds a: ["a word", "a word", "a word", "a word", "a word", "a word", ...] of 100 items (string[]))");
  CHECK(describe(MetadataChange{"a", {}, {}, metadata_string(std::string(1000, 'x'))}).size() < 100);
}

TEST_CASE("a renamed key is one change") {
  const File file;
  EditOptions options;
  options.dry_run = true;
  options.changes.rename = {{"general.name", "general.title"}};
  const auto edited = file.set("general.title", "7", options);
  REQUIRE(edited);
  REQUIRE(edited.value().changes.size() == 1);
  CHECK(describe(edited.value().changes[0]) == R"(renames general.name to general.title: "a model" -> "7" (string))");
}

TEST_CASE("settings can name a type") {
  CHECK(std::get<MetadataValue>(parse_setting("a:u32", "7").value().value) ==
        metadata_unsigned(MetadataType::kUint32, 7));
  CHECK(full_type_name(std::get<MetadataValue>(parse_setting("a:[str]", "[7]").value().value)) == "string[]");
  CHECK(parse_setting("a:u8", "300").error().what == "a: 300 does not fit uint8: 0 to 255");
  CHECK(std::get<ValueFile>(file_setting("a:[str]", "list.txt").value().value).type == "[str]");
}

TEST_CASE("an interrupted edit is undone by the next one") {
  const File file;
  write_text(file.backup(), header_copy(file.before().substr(0, file.before().size() - 512)));
  std::string torn = file.before();
  torn.replace(8, 40, 40, '\xff');
  write_text(file.path(), torn);
  const auto edited = file.set("llama.context_length", "4096");
  REQUIRE(edited);
  CHECK(edited.value().restored);
  CHECK(file.value("general.name") == "\"a model\"");
  CHECK(file.value("llama.context_length") == "4096");
  CHECK_FALSE(fs::exists(file.backup()));
}

TEST_CASE("a header backup that is damaged or belongs to another user is not restored") {
  const File file;
  const std::string copy = header_copy(file.before().substr(0, file.before().size() - 512));
  const auto refused = [&] {
    const auto edited = file.set("llama.context_length", "4096");
    return !edited && edited.error().code == ExitCode::kBadInput && edited.error().where == file.backup() &&
           read_text(file.path()) == file.before() && fs::exists(file.backup());
  };
  for (std::size_t at = 0; at < copy.size(); ++at) {
    CAPTURE(at);
    std::string damaged = copy;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_text(file.backup(), damaged);
    REQUIRE(refused());
    write_text(file.backup(), copy.substr(0, at));
    REQUIRE(refused());
  }
  write_text(file.backup(), copy + copy);
  CHECK(refused());
  write_text(file.backup(), copy);
  REQUIRE(::chmod(file.backup().c_str(), 0666) == 0);
  CHECK(refused());
  REQUIRE(::chmod(file.backup().c_str(), 0644) == 0);
  fs::create_hard_link(file.backup(), file.other("link"));
  CHECK(refused());
  fs::remove(file.other("link"));
  CHECK(file.set("llama.context_length", "4096"));
}

TEST_CASE("a second edit is refused while one is in progress") {
  const File file;
  write_text(file.backup(), header_copy(file.before().substr(0, 64)));  // the backup of the edit in progress
  {
    const Descriptor held(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(held.get(), LOCK_EX) == 0);
    const auto edited = file.set("llama.context_length", "4096");
    REQUIRE_FALSE(edited);
    CHECK(edited.error().code == ExitCode::kTransient);
    CHECK(edited.error().what == "another edit of this file is in progress");
    CHECK(read_text(file.path()) == file.before());
    CHECK(fs::exists(file.backup()));
  }
  CHECK(file.set("llama.context_length", "4096"));
}

TEST_CASE("the header backup of a file that was replaced since is not restored into the new one") {
  const File file;
  const std::string backup = file.backup();
  write_text(backup, std::string(64, 'x'));
  write_text(file.other("download.gguf"), file.before());
  fs::rename(file.other("download.gguf"), file.path());
  const auto edited = file.set("llama.context_length", "4096");
  REQUIRE(edited);
  CHECK_FALSE(edited.value().restored);
  CHECK(file.value("general.name") == "\"a model\"");
}

TEST_CASE("a dry run restores nothing and reports what to do") {
  const File file;
  write_text(file.backup(), header_copy(file.before().substr(0, file.before().size() - 512)));
  EditOptions options;
  options.dry_run = true;
  const auto edited = file.set("llama.context_length", "4096", options);
  REQUIRE_FALSE(edited);
  CHECK(edited.error().what == "an earlier edit of this file was interrupted");
  CHECK(fs::exists(file.backup()));
}

TEST_CASE("an edit never writes over what it reads") {
  const File file;
  EditOptions options;
  options.overwrite = true;
  options.output = file.other("link.gguf");
  fs::create_hard_link(file.path(), options.output);
  const auto edited = file.set("llama.context_length", "4096", options);
  REQUIRE_FALSE(edited);
  CHECK(edited.error().code == ExitCode::kUsage);
  CHECK(edited.error().help == "choose another output: inputs are never overwritten");
  CHECK(read_text(file.path()) == file.before());
}

TEST_CASE("the leftover file of a killed edit is named, and the next edit removes it") {
  const File file;
  const std::string left = temporary_path(file.path(), "edit");
  write_text(left, "a copy");
  const auto leftovers = edit_leftovers(file.path());
  REQUIRE(leftovers.size() == 1);
  CHECK(leftovers[0].path == left);
  CHECK(leftovers[0].bytes == 6);
  REQUIRE(file.set("llama.context_length", "4096"));
  CHECK_FALSE(fs::exists(left));
  CHECK(edit_leftovers(file.path()).empty());
}

TEST_CASE("another user's file with the name of an edit's leftover file is kept") {
  const File file;
  const std::string left = temporary_path(file.path(), "edit");
  write_text(file.other("victim"), "untouched");
  fs::create_hard_link(file.other("victim"), left);
  const auto edited = file.set("general.name", std::string(4096, 'x'));
  REQUIRE(edited);
  CHECK(edited.value().warnings.size() == 1);
  CHECK(read_text(file.other("victim")) == "untouched");
}

TEST_CASE("a header backup that others may have written is not restored") {
  const File file;
  write_text(file.backup(), std::string(64, 'x'));
  fs::permissions(file.backup(), fs::perms(0666));
  const auto edited = file.set("llama.context_length", "4096");
  REQUIRE_FALSE(edited);
  CHECK(edited.error().code == ExitCode::kBadInput);
  CHECK(read_text(file.path()) == file.before());
}

TEST_CASE("keys about shards, which only writers of shards set, are refused") {
  const File file;
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) {
    const auto edited = file.set(key, "5");
    REQUIRE(!edited);
    CHECK(edited.error().code == ExitCode::kUsage);
    CHECK(edited.error().what.find(key) != std::string::npos);
  }
  CHECK(read_text(file.path()) == file.before());
}

namespace {

// Two models with tensors of their own, and what a change of the first makes of it.
class Pair {
 public:
  Pair() {
    write("a.gguf", {{"token_embd.weight", 'a'}, {"output.weight", 'b'}, {"extra.weight", 'c'}});
    write("b.gguf", {{"output.weight", 'd'}, {"new.weight", 'e'}});
  }

  std::string path(const std::string& name) const { return folder_.file(name); }
  Result<Edited> edit(EditOptions options) const { return edit_metadata(path("a.gguf"), options); }
  // Returns "NAME: FIRST BYTE" of the tensors.
  std::vector<std::string> tensors() const {
    std::vector<std::string> all;
    const std::string bytes = read_text(path("a.gguf"));
    const Model model = read_gguf(path("a.gguf")).value();
    for (const Tensor& tensor : model.tensors)
      all.push_back(tensor.name + ": " + bytes[tensor.expression->extent.offset]);
    return all;
  }
  void write(const std::string& name, const std::vector<std::pair<std::string, char>>& tensors,
             bool big_endian = false) const {
    GgufBuilder builder;
    builder.big_endian = big_endian;
    builder.metadata.push_back({"general.name", metadata_string(name)});
    for (const auto& [tensor, byte] : tensors) {
      builder.add_tensor(tensor, {32, 4});
      builder.tensors.back().data.assign(512, byte);
    }
    builder.write(path(name));
  }

 private:
  TempDir folder_;
};

}  // namespace

TEST_CASE("tensors are dropped, renamed and taken, in this order, with their bytes") {
  const Pair pair;
  EditOptions options;
  options.drop = {"^output"};
  options.changes.rename = {{"extra.weight", "output.weight"}, {"general.name", "general.title"}};
  options.take = {{"extra.weight", pair.path("b.gguf"), "new.weight"}};
  const auto edited = pair.edit(options);
  REQUIRE(edited);
  CHECK(pair.tensors() == std::vector<std::string>{"token_embd.weight: a", "output.weight: c", "extra.weight: e"});
  REQUIRE(edited.value().tensors.size() == 3);
  CHECK(describe(edited.value().tensors[0]) == "drops tensor output.weight: 32 x 4 F32, 512 B");
  CHECK(edited.value().changes.size() == 1);
}

TEST_CASE("a renamed tensor stays where it is, and a taken one replaces another") {
  const Pair pair;
  EditOptions options;
  options.changes.rename = {{"extra.weight", "other.weight"}, {"output.weight", "extra.weight"}};
  auto edited = pair.edit(options);
  REQUIRE(edited);
  CHECK(edited.value().in_place);
  CHECK(pair.tensors() == std::vector<std::string>{"token_embd.weight: a", "extra.weight: b", "other.weight: c"});
  options = {};
  options.take = {{"extra.weight", pair.path("b.gguf"), "output.weight"},
                  {"other.weight", pair.path("a.gguf"), "token_embd.weight"}};
  edited = pair.edit(options);
  REQUIRE(edited);
  CHECK_FALSE(edited.value().in_place);
  CHECK(pair.tensors() == std::vector<std::string>{"token_embd.weight: a", "extra.weight: d", "other.weight: a"});
}

TEST_CASE("a change of tensors that cannot be leaves the file as it is") {
  const Pair pair;
  const std::string before = read_text(pair.path("a.gguf"));
  const auto error = [&](const EditOptions& options) {
    const auto edited = pair.edit(options);
    REQUIRE_FALSE(edited);
    CHECK(read_text(pair.path("a.gguf")) == before);
    return edited.error().code;
  };
  EditOptions options;
  options.drop = {"none"};
  CHECK(error(options) == ExitCode::kUsage);
  options.drop = {"weight"};
  CHECK(error(options) == ExitCode::kUsage);
  options = {};
  options.changes.rename = {{"output.weight", "extra.weight"}};
  CHECK(error(options) == ExitCode::kUsage);
  options.changes.rename = {{"none.weight", "extra.weight"}};
  CHECK(error(options) == ExitCode::kUsage);
  options = {};
  options.take = {{"x", pair.path("none.gguf"), "x"}};
  CHECK(error(options) == ExitCode::kBadInput);
}

TEST_CASE("a tensor is not taken from a file of the other byte order, whatever else is dropped") {
  const Pair pair;
  pair.write("big.gguf", {{"output.weight", 'x'}}, true);
  EditOptions options;
  options.drop = {"."};
  options.take = {{"output.weight", pair.path("big.gguf"), "output.weight"}};
  const auto into_little = pair.edit(options);
  REQUIRE_FALSE(into_little);
  CHECK(into_little.error().what.find("big.gguf' is a big-endian file, but ") != std::string::npos);
  options.take = {{"output.weight", pair.path("a.gguf"), "output.weight"}};
  const auto into_big = edit_metadata(pair.path("big.gguf"), options);
  REQUIRE_FALSE(into_big);
  CHECK(into_big.error().what.find("a.gguf' is a little-endian file, but ") != std::string::npos);
  pair.write("empty.gguf", {});  // without tensors, a file is written as little-endian
  options = {};
  options.take = {{"output.weight", pair.path("big.gguf"), "output.weight"}};
  CHECK_FALSE(edit_metadata(pair.path("empty.gguf"), options));
  options.take = {{"output.weight", pair.path("a.gguf"), "output.weight"}};
  CHECK(edit_metadata(pair.path("empty.gguf"), options));
}

TEST_CASE("a name that llama.cpp does not read gives a warning") {
  const Pair pair;
  EditOptions options;
  options.changes.rename = {{"extra.weight", std::string(64, 'n')}};
  const auto edited = pair.edit(options);
  REQUIRE(edited);
  REQUIRE(edited.value().warnings.size() == 1);
  CHECK(edited.value().warnings[0].starts_with("1 tensor name is longer than the 63 bytes"));
}

TEST_CASE("a key that comes from another file can be renamed") {
  const TempDir folder;
  for (const char* const name : {"a.gguf", "b.gguf"}) {
    GgufBuilder builder;
    builder.metadata.push_back({"general.architecture", metadata_string("llama")});
    if (*name == 'b') builder.metadata.push_back({"general.url", metadata_string("https://example.org")});
    builder.add_tensor("token_embd.weight", {32, 4});
    builder.write(folder.file(name));
  }
  EditOptions options;
  options.like = LikeOptions{folder.file("b.gguf")};
  options.changes.rename = {{"general.url", "general.source.url"}};
  const auto edited = edit_metadata(folder.file("a.gguf"), options);
  REQUIRE(edited);
  REQUIRE(edited.value().changes.size() == 1);
  CHECK(edited.value().changes[0].key == "general.source.url");
}

TEST_CASE("a taken tensor has a name, a file, and a name there") {
  const TakenTensor taken = parse_taken("a", "folder/other.gguf:b:c", "--take").value();
  CHECK(taken.path == "folder/other.gguf");
  CHECK(taken.from == "b:c");
  CHECK(parse_taken("a", "other.gguf", "--take").value().from == "a");
  CHECK(parse_taken("a", "other:b", "--take").value().path == "other");
  for (const auto& [name, from] : {std::pair("", "other.gguf:b"), {"a", ""}, {"a", "b"}, {"a", ":b"}, {"a", "b.gguf:"}})
    CHECK_FALSE(parse_taken(name, from, "--take"));
}

TEST_CASE("an address is reported without what may be secret") {
  const Pair pair;
  const std::string address = "https://user:password@example.org/m.gguf?key=secret";
  const auto edited = edit_metadata(address, {});
  REQUIRE_FALSE(edited);
  CHECK(edited.error().what == "'https://...@example.org/m.gguf' is not a local file");
  EditOptions options;
  for (const std::string& from : {address, address + ":output.weight"}) {
    const auto taken = parse_taken("output.weight", from, "--take");
    REQUIRE(taken);
    options.take = {taken.value()};
    const auto refused = pair.edit(options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.ends_with("'https://...@example.org/m.gguf' is not a local file"));
  }
}
