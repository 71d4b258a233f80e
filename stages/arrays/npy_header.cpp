#include "stages/arrays/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "pipeline/core/text.h"

namespace ggufmill::arrays {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMaxHeaderLength = 1 << 20;  // NumPy asks before it reads more than 10000 bytes
constexpr std::size_t kAlignment = 64;               // of the data in files that are written

// Kind and size as NumPy writes them, and the type.
struct NpyType {
  std::string_view name, type;
};
constexpr NpyType kTypes[] = {{"f8", "F64"}, {"f4", "F32"}, {"f2", "F16"}, {"i8", "I64"},
                              {"i4", "I32"}, {"i2", "I16"}, {"i1", "I8"},  {"u8", "U64"},
                              {"u4", "U32"}, {"u2", "U16"}, {"u1", "U8"},  {"b1", "BOOL"}};

// Values of the dictionary.
struct Dictionary {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

// Parses the dictionary, which has a fixed form: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  // Returns the problem with the dictionary; empty if it is valid.
  std::string read(Dictionary& dictionary) {
    if (!take('{')) return "expected a dictionary";
    while (!take('}')) {
      std::string key;
      if (!take_string(key) || !take(':')) return "expected a key";
      if (std::string problem = read_value(key, dictionary); !problem.empty()) return problem;
      if (!take(',') && peek() != '}') return "unexpected text after a value";
    }
    if (peek() != '\0') return "unexpected text after the dictionary";
    if (!dictionary.descr || !dictionary.fortran_order || !dictionary.shape)
      return "it needs descr, fortran_order, and shape";
    return {};
  }

 private:
  std::string read_value(const std::string& key, Dictionary& dictionary) {
    if (key == "descr") {
      if (peek() == '[') return "an array of records, which is not supported";
      return take_string(dictionary.descr.emplace()) ? "" : "descr is not a string";
    }
    if (key == "fortran_order") {
      if (take_word("True"))
        dictionary.fortran_order = true;
      else if (take_word("False"))
        dictionary.fortran_order = false;
      return dictionary.fortran_order ? "" : "fortran_order is neither True nor False";
    }
    if (key == "shape")
      return take_shape(dictionary.shape.emplace()) ? "" : "shape is not a tuple of non-negative integers";
    return fmt::format("unknown key {}", quoted_name(key));
  }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool take_string(std::string& text) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) return false;
    text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool take_shape(std::vector<std::uint64_t>& dims) {
    if (!take('(')) return false;
    while (!take(')')) {
      peek();
      std::uint64_t dim = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (error != std::errc()) return false;
      at_ += static_cast<std::size_t>(end - begin);
      take('L');  // suffix written by Python 2
      dims.push_back(dim);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class HeaderReader {
 public:
  HeaderReader(const ByteSource& file, const TypeInfo* type) : file_(file), given_(type) {}

  Result<NpyHeader> read() {
    BOOST_OUTCOME_TRY(const std::string text, read_text());
    Dictionary dictionary;
    if (const std::string problem = DictionaryReader(text).read(dictionary); !problem.empty())
      return wrong(fmt::format("not a header that NumPy writes: {}", problem));
    NpyHeader header;
    header.fortran_order = *dictionary.fortran_order;
    header.dims = std::move(*dictionary.shape);
    BOOST_OUTCOME_TRY(header.data.big_endian, read_type(*dictionary.descr, header.type));
    BOOST_OUTCOME_TRY(header.data.bytes, bytes_of_data(header));
    header.data.source = file_.describe();
    header.data.offset = data_;
    return header;
  }

 private:
  Error wrong(std::string what, std::string help = {}) const {
    return input_error(file_.path(), std::move(what), std::move(help));
  }

  // Returns the text of the dictionary.
  Result<std::string> read_text() {
    std::array<std::byte, 12> start{};
    const std::size_t bytes = std::min<std::uint64_t>(start.size(), file_.bytes());
    BOOST_OUTCOME_TRY(file_.read(0, std::span(start).first(bytes)));
    if (bytes < start.size() || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0)
      return wrong("not a .npy file", "numpy.save() writes such files");
    const auto number = [&](std::size_t at) { return std::to_integer<std::uint64_t>(start[at]); };
    const std::uint64_t major = number(6), minor = number(7);
    if (major < 1 || major > 3 || minor != 0)
      return wrong(fmt::format("format version {}.{} is not supported (supported: 1.0 to 3.0)", major, minor));
    std::uint64_t length = number(8) | number(9) << 8;
    if (major > 1) length |= number(10) << 16 | number(11) << 24;
    data_ = (major > 1 ? 12 : 10) + length;
    if (length > kMaxHeaderLength)
      return wrong(fmt::format("the header would have {} bytes, more than the limit of {}", length, kMaxHeaderLength));
    if (data_ > file_.bytes()) return wrong("the header goes past the end of the file", kDamaged);
    std::string text(length, '\0');
    BOOST_OUTCOME_TRY(file_.read(data_ - length, std::as_writable_bytes(std::span(text))));
    return text;
  }

  // Determines the type; returns true if the elements are big-endian.
  Result<bool> read_type(std::string_view descr, const TypeInfo*& type) const {
    const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
    const std::string_view name = descr.substr(has_order ? 1 : 0);
    if (given_ && given_->row_header_bytes == 0 && name == fmt::format("V{}", given_->block_bytes)) {
      type = given_;
    } else if (const auto known = std::ranges::find(kTypes, name, &NpyType::name); known != std::end(kTypes)) {
      type = &type_named(known->type);
      if (given_ && given_ != type)
        return wrong(fmt::format("the elements are {}, not {}", type->name, given_->name), "omit the type");
    } else {
      return wrong(fmt::format("elements of type {} are not supported", quoted_name(descr)),
                   name.starts_with('V') ? "if they are BF16, set it: type: BF16"
                                         : "supported: floats of 16 to 64 bits, integers, booleans");
    }
    return has_order && descr[0] == '>';
  }

  Result<std::uint64_t> bytes_of_data(const NpyHeader& header) const {
    std::uint64_t elements = 1;
    if (header.dims.size() > 4)
      return wrong(fmt::format("the array has {} dimensions, more than the limit of 4", header.dims.size()),
                   "reshape it before saving");
    for (const std::uint64_t dim : header.dims)
      if (__builtin_mul_overflow(elements, dim, &elements) || elements > static_cast<std::uint64_t>(INT64_MAX))
        return wrong(
            fmt::format("the array has the shape ({}): more than 2^63 - 1 elements", fmt::join(header.dims, ", ")));
    auto bytes = bytes_of(*header.type, elements);
    if (!bytes) return wrong("the array is too large: " + bytes.error().what);
    if (bytes.value() != file_.bytes() - data_)
      return wrong(fmt::format("({}) of {} takes {} bytes, but the header is followed by {}",
                               fmt::join(header.dims, ", "), header.type->name, bytes.value(), file_.bytes() - data_),
                   kDamaged);
    return bytes;
  }

  static constexpr const char* kDamaged = "the file is damaged or truncated, or contains more than one array";

  const ByteSource& file_;
  const TypeInfo* given_;
  std::uint64_t data_ = 0;  // start of the data in the file
};

}  // namespace

Result<NpyHeader> read_npy_header(const ByteSource& file, const TypeInfo* type) {
  return HeaderReader(file, type).read();
}

bool has_npy_type(const TypeInfo& type) {
  return std::ranges::find(kTypes, type.name, &NpyType::type) != std::end(kTypes);
}

std::string npy_header(const TypeInfo& type, const std::vector<std::uint64_t>& dims) {
  const std::string_view name = std::ranges::find(kTypes, type.name, &NpyType::type)->name;
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", type.block_bytes == 1 ? '|' : '<',
                  name, fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
  const std::size_t prefix = kMagic.size() + 4;  // version, length
  text.resize((prefix + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - prefix - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, text.size() & 0xff, text.size() >> 8})
    header += static_cast<char>(byte);
  return header + text;
}

}  // namespace ggufmill::arrays
