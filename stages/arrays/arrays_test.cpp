// Tests valid and invalid arrays.

#include "stages/arrays/arrays.h"

#include <fmt/format.h>

#include "stages/arrays/npy_header.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Returns a .npy file of version 1.0, or of another version.
std::string npy(std::string_view dictionary, std::string_view data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  file += static_cast<char>(dictionary.size());
  file += static_cast<char>(dictionary.size() >> 8);
  if (major > 1) file.append(2, '\0');
  return file.append(dictionary).append(data);
}

std::string dictionary(std::string_view descr, std::string_view shape, bool fortran_order = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran_order ? "True" : "False",
                     shape);
}

class Arrays {
 public:
  const Arrays& file(const std::string& name, std::string_view bytes) const {
    write_text(folder_.file(name), bytes);
    return *this;
  }
  Result<Model> open(std::string_view yaml) const {
    write_text(folder_.file("arrays.yaml"), yaml);
    return make_arrays_source(folder_.file("arrays.yaml"))->open();
  }
  // Returns "name: type of shape from byte" for each tensor, or the error.
  std::string words(std::string_view yaml) const {
    const auto model = open(yaml);
    if (!model) return model.error().what;
    std::string text;
    for (const Tensor& tensor : model.value().tensors) {
      const Extent& extent = *first_extent(*tensor.expression);
      text += fmt::format("{}: {} of {} from {}{}{}\n", tensor.name, tensor.source_type().name,
                          describe(tensor.shape()), extent.offset, extent.big_endian ? ", big-endian" : "",
                          tensor.expression->as_extent() ? "" : ", transposed");
    }
    return text;
  }
  // Same for a single .npy file.
  std::string words_of_npy(std::string_view bytes, std::string_view more = "") const {
    file("a.npy", bytes);
    return words(fmt::format("tensors: [{{name: a, npy: a.npy{}}}]", more));
  }

 private:
  TempDir folder_;
};

Model model_of(const std::vector<std::pair<const char*, const char*>>& tensors) {
  Model model;
  for (const auto& [name, type] : tensors) {
    Tensor& tensor = model.tensors.emplace_back(bare_tensor(name, {32, 2}));
    set_source(tensor, tensor.shape(), type);
    tensor.type = &tensor.source_type();
  }
  return model;
}

}  // namespace

TEST_CASE("NumPy arrays keep their shape, with the row length first") {
  const Arrays arrays;
  CHECK(arrays.words_of_npy(npy(dictionary("<f4", "(3, 2)"), std::string(24, 'x'))) == "a: F32 of 2 x 3 from 70\n");
  CHECK(arrays.words_of_npy(npy(dictionary("<f2", "(3,)"), "123456", 2)) == "a: F16 of 3 from 70\n");
  CHECK(arrays.words_of_npy(npy(dictionary("|u1", "()"), "1", 3)) == "a: U8 of 1 from 68\n");
  CHECK(arrays.words_of_npy(npy(dictionary(">i8", "(1L, 2L)"), std::string(16, 'x'))) ==
        "a: I64 of 2 x 1 from 72, big-endian\n");
  CHECK(arrays.words_of_npy(npy(dictionary("<f4", "(3, 2)", true), std::string(24, 'x'))) ==
        "a: F32 of 2 x 3 from 69, transposed\n");
  CHECK(arrays.words_of_npy(npy(dictionary("<f4", "(3,)", true), std::string(12, 'x'))) == "a: F32 of 3 from 67\n");
  CHECK(arrays.words_of_npy(npy(dictionary("|V2", "(2,)"), "1234"), ", type: BF16") == "a: BF16 of 2 from 68\n");
}

TEST_CASE("a damaged .npy file gives one error") {
  const Arrays arrays;
  const auto problem = [&](std::string_view dictionary, std::string_view data = "1234") {
    return arrays.words_of_npy(npy(dictionary, data));
  };
  CHECK(arrays.words_of_npy("") == "not a .npy file");
  CHECK(arrays.words_of_npy("PK\3\4 and so on") == "not a .npy file");
  CHECK(arrays.words_of_npy(npy("{}   ", "", 4)) == "format version 4.0 is not supported (supported: 1.0 to 3.0)");
  CHECK(arrays.words_of_npy(npy(dictionary("<f4", "(1,)"), "").substr(0, 40)) ==
        "the header goes past the end of the file");
  CHECK(arrays.words_of_npy(std::string("\x93NUMPY\2\0\0\0\0\x7f{}", 14)) ==
        "the header would have 2130706432 bytes, more than the limit of 1048576");
  CHECK(problem(dictionary("<c8", "(1,)")) == "elements of type '<c8' are not supported");
  CHECK(problem(dictionary("|V2", "(2,)")) == "elements of type '|V2' are not supported");
  CHECK(problem(dictionary("<f4", "(2,)")) == "(2) of F32 takes 8 bytes, but the header is followed by 4");
  CHECK(problem(dictionary("|u1", "(2,)")) == "(2) of U8 takes 2 bytes, but the header is followed by 4");
  CHECK(problem(dictionary("|u1", "(1, 1, 1, 1, 4)")) == "the array has 5 dimensions, more than the limit of 4");
  CHECK(problem(dictionary("<f4", "(4294967296, 4294967296)")) ==
        "the array has the shape (4294967296, 4294967296): more than 2^63 - 1 elements");
  CHECK(problem(dictionary("<f4", "(99999999999999999999,)")) ==
        "not a header that NumPy writes: shape is not a tuple of non-negative integers");
  CHECK(problem("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") ==
        "not a header that NumPy writes: an array of records, which is not supported");
  CHECK(problem("{'descr': '<f4', 'shape': (1,)}") ==
        "not a header that NumPy writes: it needs descr, fortran_order, and shape");
  for (const char* broken :
       {"", "{", "{'descr", "{'descr': ", "{'descr': '<f4' 'shape'", "[1]", "{'shape': (1", "{'shape': (1,",
        "{'shape': ((1,),)}", "{'fortran_order': 1}", "{'other': 1}", "{'descr': '<f4'} x"})
    CHECK(problem(broken).starts_with("not a header that NumPy writes: "));
}

TEST_CASE("raw files can contain tensors of any type at any offset") {
  const Arrays arrays;
  arrays.file("w.bin", std::string(100, 'x'));
  CHECK(arrays.words("tensors:\n"
                     "  - {name: a, raw: w.bin, type: F16, shape: [2, 3], offset: 8}\n"
                     "  - {name: b, raw: w.bin, type: q8_0, shape: [2, 32]}\n"
                     "  - {name: c, raw: w.bin, type: U16, shape: [], byte_order: big}\n") ==
        "a: F16 of 3 x 2 from 8\nb: Q8_0 of 32 x 2 from 0\nc: U16 of 1 from 0, big-endian\n");
  const auto problem = [&](std::string_view tensor) {
    return arrays.words(fmt::format("tensors: [{{name: a, {}}}]", tensor));
  };
  CHECK(problem("raw: w.bin, type: F32, shape: [26]") ==
        "26 of F32 takes 104 bytes from byte 0, past the end of the file of 100");
  CHECK(problem("raw: w.bin, type: F32, shape: [1], offset: 97") ==
        "1 of F32 takes 4 bytes from byte 97, past the end of the file of 100");
  CHECK(problem("raw: w.bin, type: Q8_0, shape: [31]") ==
        "rows of 31 elements are not a multiple of the block size 32 of Q8_0");
  CHECK(problem("raw: w.bin, type: F32, shape: [4294967296, 4294967296, 0]") == "more than 2^63 - 1 elements");
  CHECK(problem("raw: w.bin, type: F32, shape: [1, 1, 1, 1, 1]") == "5 dimensions are more than the limit of 4");
  CHECK(problem("raw: w.bin, type: F32") == "a raw file needs a type and a shape");
  CHECK(problem("raw: none.bin, type: F32, shape: [1]").find("No such file") != std::string::npos);
  CHECK(arrays.words("tensors:\n  - {name: a, raw: w.bin, type: F32, shape: [1]}\n"
                     "  - {name: a, raw: w.bin, type: F32, shape: [1]}\n") == "two tensors are named 'a'");
  arrays.file("a.npy", npy(dictionary("<f4", "(1,)"), "1234"));
  CHECK(problem("npy: a.npy, shape: [1]") == "a .npy file contains its own shape");
  CHECK(problem("npy: a.npy, type: F16") == "the elements are F32, not F16");
}

TEST_CASE("metadata gets the same types as in the stage, in the order written") {
  const auto model = Arrays().open(
      "metadata:\n"
      "  general.architecture: llama\n"
      "  llama.context_length: {type: uint64, value: 8192}\n"
      "  llama.block_count: 2\n"
      "  general.tags: [a, b]\n"
      "tensors: []\n");
  if (!model) FAIL(render(model.error()));
  std::string text;
  for (const MetadataEntry& entry : model.value().metadata.entries())
    text += fmt::format("{} {} {}\n", entry.key, metadata_type_name(entry.value.type), describe(entry.value));
  CHECK(text.starts_with("general.architecture string "));
  CHECK(text.find("llama.context_length uint64 8192\nllama.block_count uint32 2\ngeneral.tags array ") !=
        std::string::npos);
  const auto wrong = Arrays().open("metadata: {a: {type: uint8, value: 300}}\ntensors: []\n");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ExitCode::kUsage);
  CHECK(wrong.error().where.ends_with("arrays.yaml:1:36"));
}

TEST_CASE("a .npy file has NumPy's header, and unsupported types become F32") {
  const Model model = model_of({{"a", "F16"}, {"b/c", "U8"}, {"d", "BF16"}, {"e", "Q8_0"}});
  const auto sink = make_npy_sink({"out"});
  const auto adapted = sink->adapt(model);
  REQUIRE(adapted);
  const auto files = sink->layout(adapted.value());
  if (!files) FAIL(render(files.error()));
  std::string text;
  for (const OutputFile& file : files.value()) {
    CHECK(file.header.size() % 64 == 0);
    CHECK(file.header.starts_with(std::string("\x93NUMPY\1\0", 8)));
    CHECK(file.header.ends_with("\n"));
    text += fmt::format("{} {} {}\n", file.path, file.header.substr(10, file.header.find_last_not_of(" \n") - 9),
                        file.bytes);
  }
  CHECK(text ==
        "out/a.npy {'descr': '<f2', 'fortran_order': False, 'shape': (2, 32), } 256\n"
        "out/b_c.npy {'descr': '|u1', 'fortran_order': False, 'shape': (2, 32), } 192\n"
        "out/d.npy {'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), } 384\n"
        "out/e.npy {'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), } 384\n");
  CHECK(arrays::npy_header(type_named("F64"), {3}).find("'shape': (3,), }") != std::string::npos);
}

TEST_CASE("names that are not valid file names, or not unique, are refused") {
  const auto problem = [](const Model& model) { return make_npy_sink({"out"})->layout(model).error().what; };
  CHECK(problem(model_of({{"a/b", "F32"}, {"a_b", "F32"}})) ==
        "tensors 'a/b' and 'a_b' would be written to the same file 'a_b.npy'");
  CHECK(problem(model_of({{"../a", "F32"}})) == "the name of tensor '.._a' cannot be used as a file name");
  CHECK(problem(model_of({{"", "F32"}})) == "the name of tensor '' cannot be used as a file name");
  CHECK(problem(model_of({{"a\nb", "F32"}})) == "the name of tensor 'a\\x0ab' cannot be used as a file name");
}
