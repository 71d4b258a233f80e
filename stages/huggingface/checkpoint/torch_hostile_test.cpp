// Tests of malformed and malicious torch.save files: each yields one clear error, and nothing in them is executed.

#include <fmt/format.h>

#include <chrono>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/torch_file.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_builder.h"

using namespace ggufmill;
using namespace std::string_view_literals;

namespace {

// Returns "what; detail", or "none".
std::string problem(const std::string& file) {
  const TempDir folder;
  const std::string path = folder.file("pytorch_model.bin");
  write_text(path, file);
  const auto tensors = huggingface::read_torch_file(open_source(path).value());
  if (tensors) return "none";
  CHECK(tensors.error().code == ExitCode::kBadInput);
  CHECK(tensors.error().where == path);
  CHECK_FALSE(tensors.error().help.empty());
  return tensors.error().what + (tensors.error().detail.empty() ? "" : "; " + tensors.error().detail);
}

std::string problem_of_pickle(const std::string& pickle) { return problem(zip_of_pickle(pickle)); }
std::string problem_of_pickle(const PickleBuilder& pickle) { return problem_of_pickle(pickle.stop()); }

TorchTensor bytes(const std::string& name, std::vector<std::uint64_t> dims, const std::string& data) {
  return {name, "ByteStorage", std::move(dims), data};
}

std::string low(std::uint64_t value, std::size_t count) { return {reinterpret_cast<const char*>(&value), count}; }

constexpr std::size_t kPickleAt = 0x40;  // offset of the pickle in zip_of_pickle()

}  // namespace

TEST_CASE("a file that is not a torch.save file is reported as such") {
  CHECK(problem("") == "this is not a torch.save file");
  CHECK(problem("GGUF") == "this is not a torch.save file");
  CHECK(problem("<!DOCTYPE html>") == "this is not a torch.save file");
  CHECK(problem(std::string(257, 'x').append("ustar")) ==
        "tar archives, written by PyTorch before 0.1.10, are not supported");
  CHECK(problem(zip_file({{"a/b.txt", "x"}})) == "the zip archive has no 'a/data.pkl', which torch.save writes");
}

TEST_CASE("a file truncated anywhere is rejected") {
  for (const bool before_1_6 : {false, true}) {
    const std::string file = torch_file({bytes("a", {3}, "abc"), bytes("b", {2}, "de")}, {.before_1_6 = before_1_6});
    REQUIRE(problem(file) == "none");
    for (std::size_t size = 0; size < file.size(); ++size) REQUIRE(problem(file.substr(0, size)) != "none");
  }
}

TEST_CASE("names other than those of tensors are rejected by name, and nothing is executed") {
  const TempDir folder;
  const std::string command = "touch " + folder.file("run");
  const auto call = [&](PickleBuilder pickle, const char* module, const char* name) {
    return problem_of_pickle(pickle.name(module, name).text(command).raw("\x85R"));
  };
  CHECK(call(PickleBuilder(2), "os", "system") ==
        fmt::format("the pickle names 'os.system', which is not allowed in a dictionary of tensors; at byte {:#x}",
                    kPickleAt + 2));
  CHECK(call(PickleBuilder(4), "posix", "system").starts_with("the pickle names 'posix.system', "));
  CHECK(call(PickleBuilder(2), "builtins", "eval").starts_with("the pickle names 'builtins.eval', "));
  CHECK(call(PickleBuilder(2), "torch", "load").starts_with("the pickle names 'torch.load', "));
  CHECK(call(PickleBuilder(2), "torch._utils", "_rebuild_qtensor")
            .starts_with("the pickle names 'torch._utils._rebuild_qtensor', "));
  CHECK(call(PickleBuilder(2), "torch", "QInt8Storage").starts_with("the pickle names 'torch.QInt8Storage', "));
  CHECK(call(PickleBuilder(2), "a\x1b[2J", "b").starts_with("the pickle names 'a\\x1b[2J.b', "));
  CHECK(problem_of_pickle(PickleBuilder(2).raw("c" + std::string(300, 'x') + "\ny\n"))
            .starts_with("a name is longer than 200 bytes; "));
  CHECK_FALSE(fs::exists(folder.file("run")));
}

TEST_CASE("operations that tensors do not need are rejected") {
  for (const char* operation : {"i", "o", "d", "l", "P", "I1\n", "S'a'\n", "V\n", "\x82", "\x92", "\x8f", "0", "2"}) {
    CAPTURE(operation);
    CHECK(
        problem_of_pickle(PickleBuilder(2).raw(operation)) ==
        fmt::format("the pickle has operation {:#04x}, which is not allowed in a dictionary of tensors; at byte {:#x}",
                    static_cast<unsigned char>(*operation), kPickleAt + 2));
  }
  CHECK(problem_of_pickle("\x80\x06}.").starts_with("pickle protocol 6 is not supported; 2 to 5 are"));
}

TEST_CASE("a pickle that contradicts itself is rejected") {
  const auto raw = [](std::string_view bytes) { return problem_of_pickle(PickleBuilder(2).raw(bytes)); };
  CHECK(raw("R").starts_with("the pickle uses an object that does not exist; "));
  CHECK(raw("(R").starts_with("the pickle uses an object that does not exist; "));
  CHECK(raw("}(a").starts_with("the pickle uses an object that does not exist; "));
  CHECK(raw("t").starts_with("the pickle refers to a mark that does not exist; "));
  CHECK(raw("N(").starts_with("the pickle uses an object that does not exist; "));
  CHECK(raw("}}").starts_with("the pickle ends with unused objects; "));
  CHECK(raw("h\x07").starts_with("the pickle refers to object 7, which does not exist; "));
  CHECK(raw("}(Nu").starts_with("a dictionary has a key without a value; "));
  CHECK(raw("NNNs").starts_with("the pickle uses None as a dictionary; "));
  CHECK(raw("}Na").starts_with("the pickle uses a dictionary as a list; "));
  CHECK(raw("N)R").starts_with("the pickle calls None with a tuple; "));
  CHECK(raw("NNb").starts_with("the pickle uses None as a dictionary; "));
  CHECK(raw("NQ").starts_with("the pickle refers to an external object that is not a tensor storage; "));
  CHECK(raw("X\xff\xff\xff\xff").starts_with("the pickle is truncated; "));
  CHECK(raw("\x8d\xff\xff\xff\xff\xff\xff\xff\xff").starts_with("the pickle is truncated; "));
  CHECK(raw("\x8b\xff\xff\xff\x7f").starts_with("the pickle is truncated; "));
}

TEST_CASE("anything but a dictionary of tensors is rejected") {
  CHECK(problem_of_pickle(PickleBuilder().raw("]")) == "the file contains a list, not a dictionary of tensors");
  CHECK(problem_of_pickle(PickleBuilder().raw("}").text("model").raw("}s")) == "'model' is a dictionary, not a tensor");
  CHECK(problem_of_pickle(PickleBuilder().raw("}").text("epoch").number(7).raw("s")) ==
        "'epoch' is a number, not a tensor");
  CHECK(problem_of_pickle(PickleBuilder().raw("}NNs")) == "the dictionary has None as a key");
  CHECK(problem_of_pickle(PickleBuilder().raw("}").text("\xff").raw("Ns")) == "the name '\\xff' is not UTF-8");
}

TEST_CASE("tensors stay within their storages, and storages within the file") {
  const auto of = [&](const TorchTensor& tensor) { return problem(torch_file({tensor})); };
  CHECK(of(bytes("t", {4}, "abc")) == "tensor 't' extends to element 3 of storage '0', which has 3");
  CHECK(of({"t", "ByteStorage", {1}, "abc", "", 3}) == "tensor 't' extends to element 3 of storage '0', which has 3");
  CHECK(of({"t", "ByteStorage", {2}, "abc", "", UINT64_MAX / 2}).starts_with("tensor 't' extends to element "));
  CHECK(of({"t", "ByteStorage", {2, 2}, "abc", "", 0, {INT64_MAX, 1}}).starts_with("tensor 't' extends to element "));
  CHECK(of({"t", "ByteStorage", {4, 2}, "abc", "", 0, {INT64_MAX, 1}}) ==
        "tensor 't' has the shape [4, 2], which is too large");
  CHECK(of(bytes("t", {1ull << 32, 1ull << 32}, "abc")) ==
        "tensor 't' has the shape [4294967296, 4294967296], which is too large");
  CHECK(
      of({"t", "ByteStorage", std::vector<std::uint64_t>(9, 1), "abc"})
          .starts_with(
              "a tensor's shape and strides are not two lists of the same length with up to 8 non-negative integers"));
  CHECK(of({"t", "ByteStorage", {UINT64_MAX}, "abc"}).starts_with("a tensor's shape and strides"));  // -1
  const std::string pickle = torch_pickle({bytes("t", {1}, "abc")});
  CHECK(problem(zip_of_pickle(pickle)) == "the zip archive has no 'pytorch_model/data/0'");
  CHECK(problem(zip_of_pickle(pickle, {{"pytorch_model/data/0", "ab"}})) ==
        "tensor 't' is in storage '0', which has 2 bytes, not 3 elements");
}

TEST_CASE("a storage's key cannot lead out of the archive") {
  for (const char* key : {"../../data.pkl", "/etc/passwd", "..", "a/b"}) {
    TorchTensor tensor = bytes("t", {1}, "a");
    tensor.key = key;
    CHECK(problem(zip_of_pickle(torch_pickle({tensor}))) ==
          fmt::format("the zip archive has no 'pytorch_model/data/{}'", key));
  }
}

TEST_CASE("an archive whose files overlap, repeat, or are not stored uncompressed is rejected") {
  const std::string pickle = torch_pickle({bytes("t", {4}, "abcd")});
  const auto with = [&](ZipMember member) {
    const std::string what = problem(zip_of_pickle(pickle, {std::move(member)}));
    return what.substr(0, what.find("; at byte"));
  };
  const std::string name = "pytorch_model/data/0";
  CHECK(with({name, "abcd"}) == "none");
  CHECK(with({name, "abcd", 1}) == "'pytorch_model/data/0' in the zip archive is encrypted");
  CHECK(with({name, "abcd", 0, 8}) ==
        "'pytorch_model/data/0' in the zip archive is compressed, which torch.save does not do");
  CHECK(with({name, "abcd", 0, 0, 0}).ends_with("overlaps the data after it"));
  CHECK(with({name, "abcd", 0, 0, {}, 1 << 20}).ends_with("1048576 bytes, overlaps the data after it"));
  CHECK(with({name, "abcd", 0, 0, {}, 40}).starts_with("'pytorch_model/data/0' in the zip archive overlaps the data "));
  CHECK(with({"pytorch_model/data.pkl", "x"}) == "the zip archive contains 'pytorch_model/data.pkl' twice");
  CHECK(with({name, "abcd", 0, 0, 7}).find("in the zip archive") != std::string::npos);
}

TEST_CASE("impossible numbers in an archive are rejected") {
  const std::string good = zip_file({{"a/data.pkl", "\x80\2}."}});
  const std::size_t end = good.size() - 22;
  const auto with = [&](std::size_t at, std::string_view bytes) {
    std::string file = good;
    file.replace(at, bytes.size(), bytes);
    const std::string what = problem(file);
    return what.substr(0, what.find("; at byte"));
  };
  REQUIRE(problem(good) == "none");
  CHECK(with(end + 16, "\xff\xff\xff\xff").ends_with("extends past its end"));
  CHECK(with(end + 12, "\xff\xff\xff\xff").ends_with("extends past its end"));
  CHECK(with(end + 10, "\xff\xff") == "entry 1 of the zip archive's directory is not valid");
  CHECK(with(end + 4, "\1") == "the zip archive is split into several parts");
  CHECK(with(good.find("PK\1\2") + 28, "\xff\xff") == "entry 0 of the zip archive's directory extends past its end");
  CHECK(with(good.find("PK\1\2") + 42, "\xff\xff\xff\xff") == "'a/data.pkl' in the zip archive has no size");
  CHECK(problem(good + "trailing").starts_with("the zip archive has no directory at its end"));
}

TEST_CASE("a file that does not have its CRC-32 is rejected") {
  const auto with = [](std::uint32_t checksum) {
    ZipMember pickle{"a/data.pkl", "\x80\2}."};
    pickle.checksum = checksum;
    const std::string what = problem(zip_file({pickle}));
    return what.substr(0, what.find("; at byte"));
  };
  CHECK(with(0x89deb73d) == "none");
  CHECK(with(0x89deb73e) ==
        "'a/data.pkl' in the zip archive has the CRC-32 89deb73d, but the archive records 89deb73e");
  CHECK(with(0) == "none");  // not computed
}

TEST_CASE("an unknown byte order is rejected") {
  CHECK(problem(torch_file({bytes("t", {1}, "a")}, {.byte_order = "middle"})) ==
        "the byte order is 'middle', expected little or big");
}

TEST_CASE("a pickle that would grow without limit is stopped") {
  // A list of pairs, converted to a dictionary many times.
  PickleBuilder pairs;
  pairs.raw("](");
  for (int i = 0; i < 1000; ++i) pairs.raw("NN\x86");
  pairs.raw("eq").raw("\1"sv);
  for (int i = 0; i < 5000; ++i) pairs.raw("ccollections\nOrderedDict\nh\1\x85R");
  CHECK(problem_of_pickle(pairs).starts_with("the pickle has more than 4000000 objects; "));
  // Tuples that contain the same tuple twice, nested.
  PickleBuilder tuples;
  tuples.raw(")q").raw("\0"sv);
  for (int i = 0; i < 100; ++i) tuples.raw("h").raw("\0"sv).raw("h").raw("\0"sv).raw("\x86q").raw("\0"sv).raw("\x85");
  CHECK(problem_of_pickle(tuples).starts_with("the pickle ends with unused objects; "));
  CHECK(problem_of_pickle(PickleBuilder().raw(std::string(4'000'001, 'N')))
            .starts_with("the pickle has more than 4000000 objects; "));
  CHECK(problem_of_pickle(PickleBuilder().raw(std::string(4'000'001, '(')))
            .starts_with("the pickle has more than 4000000 objects; "));
}

TEST_CASE("nesting as deep as the file is long is handled") {
  CHECK(problem_of_pickle(PickleBuilder().raw(")" + std::string(3'000'000, '\x85'))) ==
        "the file contains a tuple, not a dictionary of tensors");
}

TEST_CASE("a pickle longer than any checkpoint's is rejected") {
  const std::string text = "B" + low(60 << 20, 4) + std::string(60 << 20, 'x');
  CHECK(
      problem_of_pickle(PickleBuilder().raw(text).raw(text)).starts_with("the pickle has more than 67108864 bytes; "));
}

TEST_CASE("storages of a file from before PyTorch 1.6 match its tensors") {
  const std::string good = torch_file({bytes("t", {4}, "abcd")}, {.before_1_6 = true});
  const auto with = [&](std::size_t from_end, std::string_view bytes) {
    std::string file = good;
    file.replace(file.size() - from_end, bytes.size(), bytes);
    const std::string what = problem(file);
    return what.substr(0, what.find(" at byte"));
  };
  REQUIRE(problem(good) == "none");
  CHECK(with(12, low(5, 8)) == "storage '0' has 5 elements");
  CHECK(with(12, low(UINT64_MAX, 8)) == "storage '0' has 18446744073709551615 elements");
  CHECK(with(15, "1") == "the list of storages does not match the tensors");
}

TEST_CASE("a dictionary of more tensors than any checkpoint has is rejected") {
  PickleBuilder pickle(2);
  pickle.raw("}(");
  for (int i = 0; i < 500'001; ++i) pickle.text(std::to_string(i)).raw("N");
  CHECK(problem_of_pickle(pickle.raw("u")) == "more than 500000 tensors");
}
