#include "stages/safetensors/header_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>

#include "pipeline/core/text.h"
#include "pipeline/io/checkpoint_files.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::safetensors {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::uint64_t kLengthBytes = 8;

// Names of types in the format, and the corresponding types of this program. Types without an equivalent are read as
// bytes.
struct Dtype {
  std::string_view name, type;
  std::uint64_t elements_in_byte = 0;  // 0: not a packed type
};
constexpr Dtype kDtypes[] = {
    {"F64", "F64"},         {"F32", "F32"},    {"F16", "F16"},  {"BF16", "BF16"}, {"F8_E4M3", "F8_E4M3"},
    {"F8_E5M2", "F8_E5M2"}, {"F8_E8M0", "U8"}, {"F4", "U8", 2}, {"I64", "I64"},   {"I32", "I32"},
    {"I16", "I16"},         {"I8", "I8"},      {"U64", "U64"},  {"U32", "U32"},   {"U16", "U16"},
    {"U8", "U8"},           {"BOOL", "BOOL"},
};

// Description of a tensor in the header, not yet checked.
struct Entry {
  std::string name, dtype;
  std::vector<std::uint64_t> shape, offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Receives the events of the JSON document.
class HeaderSink final : public JsonSink {
 public:
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string problem;  // first problem found in the document

  bool wants(std::string_view outer, std::string_view inner) override { return outer.empty() && inner.empty(); }

  std::string take(const JsonEvent& event) override { return problem = check(event); }

 private:
  using Kind = JsonEvent::Kind;
  enum class Level { kStart, kDocument, kMetadata, kTensor, kNumbers };

  std::string check(const JsonEvent& event) {
    if (skipped_ > 0) return skip(event), std::string();
    switch (level_) {
      case Level::kStart:
        if (event.kind != Kind::kObjectBegin) return "the header is not an object";
        level_ = Level::kDocument;
        return {};
      case Level::kDocument:
        return take_name(event);
      case Level::kMetadata:
        return take_metadata(event);
      case Level::kTensor:
        return take_field(event);
      case Level::kNumbers:
        return take_number(event);
    }
    return {};
  }

  std::string tensor_problem(std::string_view what) const {
    return fmt::format("tensor {} {}", quoted_name(entries.back().name), what);
  }

  std::string take_name(const JsonEvent& event) {
    if (event.kind == Kind::kKey) {
      key_ = event.text;
      if (!names_.insert(key_).second) return fmt::format("tensor {} appears twice", quoted_name(key_));
      return {};
    }
    if (event.kind == Kind::kObjectEnd) return {};
    if (event.kind != Kind::kObjectBegin) return fmt::format("{} is not an object", quoted_name(key_));
    level_ = key_ == kMetadataKey ? Level::kMetadata : Level::kTensor;
    if (level_ != Level::kTensor) return {};
    if (entries.size() == kMaxCheckpointTensors) return fmt::format("more than {} tensors", kMaxCheckpointTensors);
    entries.emplace_back().name = key_;
    return {};
  }

  std::string take_metadata(const JsonEvent& event) {
    if (event.kind == Kind::kObjectEnd) return level_ = Level::kDocument, std::string();
    if (event.kind == Kind::kKey) {
      key_ = event.text;
      return {};
    }
    if (event.kind != Kind::kString) return fmt::format("{}: {} is not a string", kMetadataKey, quoted_name(key_));
    metadata.emplace_back(key_, event.text);
    return {};
  }

  std::string take_field(const JsonEvent& event) {
    Entry& entry = entries.back();
    if (event.kind == Kind::kObjectEnd) {
      level_ = Level::kDocument;
      if (entry.has_dtype && entry.has_shape && entry.has_offsets && entry.offsets.size() == 2) return {};
      return tensor_problem("needs dtype, shape, and two data_offsets");
    }
    if (event.kind == Kind::kKey) {
      key_ = event.text;
      return {};
    }
    if (key_ == "dtype") {
      if (event.kind != Kind::kString || std::exchange(entry.has_dtype, true))
        return tensor_problem("needs exactly one dtype, a string");
      entry.dtype = event.text;
      return {};
    }
    if (key_ != "shape" && key_ != "data_offsets") return skip(event), std::string();  // of a later version
    numbers_ = key_ == "shape" ? &entry.shape : &entry.offsets;
    bool& is_there = key_ == "shape" ? entry.has_shape : entry.has_offsets;
    if (event.kind != Kind::kArrayBegin || std::exchange(is_there, true))
      return tensor_problem(fmt::format("needs exactly one {}, a list", key_));
    level_ = Level::kNumbers;
    return {};
  }

  std::string take_number(const JsonEvent& event) {
    if (event.kind == Kind::kArrayEnd) return level_ = Level::kTensor, std::string();
    std::uint64_t number = 0;
    const char* end = event.text.data() + event.text.size();
    const auto [rest, error] = std::from_chars(event.text.data(), end, number);
    if (event.kind != Kind::kNumber || rest != end || error != std::errc())
      return tensor_problem(fmt::format("has a value that is not a non-negative 64-bit integer in {}", key_));
    if (numbers_->size() == kMaxDimensions)
      return tensor_problem(fmt::format("has more than {} numbers in {}", kMaxDimensions, key_));
    numbers_->push_back(number);
    return {};
  }

  void skip(const JsonEvent& event) {
    if (event.kind == Kind::kObjectBegin || event.kind == Kind::kArrayBegin) ++skipped_;
    if (event.kind == Kind::kObjectEnd || event.kind == Kind::kArrayEnd) --skipped_;
  }

  Level level_ = Level::kStart;
  std::string key_;
  std::vector<std::uint64_t>* numbers_ = nullptr;
  std::size_t skipped_ = 0;  // nesting depth of unknown arrays and objects
  std::unordered_set<std::string> names_;
};

std::string describe_dims(const std::vector<std::uint64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

class HeaderReader {
 public:
  explicit HeaderReader(const ByteSource& file) : file_(file) {}

  Result<Header> read() {
    BOOST_OUTCOME_TRY(read_length());
    HeaderSink sink;
    if (Status read = read_json_part(file_, kLengthBytes, data_ - kLengthBytes, sink); !read) {
      if (!sink.problem.empty()) read.error().what = sink.problem;
      return read.error();
    }
    Header header;
    header.metadata = std::move(sink.metadata);
    for (Entry& entry : sink.entries) {
      BOOST_OUTCOME_TRY(HeaderTensor tensor, checked(std::move(entry)));
      header.tensors.push_back(std::move(tensor));
    }
    BOOST_OUTCOME_TRY(check_places(header.tensors));
    std::ranges::sort(header.tensors, {}, &HeaderTensor::name);
    return header;
  }

 private:
  Error wrong(std::string what, std::string help = {}) const {
    return input_error(file_.path(), std::move(what), std::move(help));
  }
  Error wrong(const HeaderTensor& tensor, std::string_view what, std::string help = {}) const {
    return wrong(fmt::format("tensor {} {}", quoted_name(tensor.name), what), std::move(help));
  }

  Status read_length() {
    std::array<std::byte, kLengthBytes + 1> start{};
    const std::size_t bytes = std::min<std::uint64_t>(start.size(), file_.bytes());
    BOOST_OUTCOME_TRY(file_.read(0, std::span(start).first(bytes)));
    if (bytes < kLengthBytes)
      return wrong(fmt::format("{} bytes are too short for a safetensors file", bytes), kDamagedFileHelp);
    std::uint64_t length = 0;
    for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(start[i]);
    if (length > kMaxHeaderLength) {
      Error error = wrong(
          fmt::format("the header would have {} bytes, more than the format's limit of {}", length, kMaxHeaderLength),
          "check that this is a safetensors file");
      error.detail = "at byte 0x0";
      return error;
    }
    if (length > file_.bytes() - kLengthBytes)
      return wrong(fmt::format("the header of {} bytes goes past the end of the file", length), kDamagedFileHelp);
    data_ = kLengthBytes + length;
    if (length == 0 || start[kLengthBytes] != std::byte{'{'}) {
      Error error = wrong("the header does not begin with '{'", "check that this is a safetensors file");
      error.detail = fmt::format("at byte {:#x}", kLengthBytes);
      return error;
    }
    return ok();
  }

  Result<HeaderTensor> checked(Entry entry) const {
    HeaderTensor tensor;
    tensor.name = std::move(entry.name);
    tensor.dims = std::move(entry.shape);
    const auto dtype = std::ranges::find(kDtypes, entry.dtype, &Dtype::name);
    if (dtype == std::end(kDtypes)) {
      std::vector<std::string_view> known;
      for (const Dtype& each : kDtypes) known.push_back(each.name);
      return wrong(tensor, fmt::format("is of type {}, which is not supported", quoted_name(entry.dtype)),
                   fmt::format("supported types: {}", fmt::join(known, ", ")));
    }
    tensor.type = &type_named(dtype->type);
    if (dtype->elements_in_byte != 0) {
      if (tensor.dims.empty() || tensor.dims.back() % dtype->elements_in_byte != 0)
        return wrong(tensor, fmt::format("of {} has rows that are not a whole number of bytes: {}", dtype->name,
                                         describe_dims(tensor.dims)));
      tensor.dims.back() /= dtype->elements_in_byte;
    }
    BOOST_OUTCOME_TRY(place(tensor, entry.offsets[0], entry.offsets[1]));
    return tensor;
  }

  Status place(HeaderTensor& tensor, std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t elements = 1;
    bool fits = true;
    for (const std::uint64_t dim : tensor.dims)
      fits = fits && !__builtin_mul_overflow(elements, std::max<std::uint64_t>(1, dim), &elements) &&
             elements <= static_cast<std::uint64_t>(INT64_MAX);
    if (!fits)
      return wrong(tensor, fmt::format("has the shape {}: more than 2^63 - 1 elements", describe_dims(tensor.dims)));
    if (std::ranges::count(tensor.dims, 0u) != 0) elements = 0;
    const auto bytes = bytes_of(*tensor.type, elements);
    if (!bytes) return wrong(tensor, "is too large: " + bytes.error().what);
    if (begin > end || end - begin != bytes.value())
      return wrong(tensor, fmt::format("is at {} to {} of the data, but {} of {} takes {} bytes", begin, end,
                                       describe_dims(tensor.dims), tensor.type->name, bytes.value()));
    if (end > file_.bytes() - data_)
      return wrong(tensor, fmt::format("is at {} to {} of the data, past the end of the file", begin, end),
                   kDamagedFileHelp);
    tensor.begin = data_ + begin;
    tensor.bytes = bytes.value();
    return ok();
  }

  // Checks that there are neither gaps nor overlaps, as the format requires.
  Status check_places(const std::vector<HeaderTensor>& tensors) const {
    std::vector<const HeaderTensor*> order;
    order.reserve(tensors.size());
    for (const HeaderTensor& tensor : tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, [](const HeaderTensor* tensor) { return std::pair(tensor->begin, tensor->bytes); });
    std::uint64_t end = data_;
    const HeaderTensor* before = nullptr;
    for (const HeaderTensor* tensor : order) {
      if (tensor->begin < end)
        return wrong(*tensor, fmt::format("at byte {:#x} overlaps tensor {}, which ends at byte {:#x}", tensor->begin,
                                          quoted_name(before->name), end));
      if (tensor->begin > end) return gap(end, tensor->begin);
      end += tensor->bytes;
      before = tensor;
    }
    if (end < file_.bytes()) return gap(end, file_.bytes());
    return ok();
  }

  Error gap(std::uint64_t from, std::uint64_t to) const {
    Error error = wrong(fmt::format("{} bytes of the data do not belong to a tensor", to - from),
                        "the format does not allow gaps: recreate the file");
    error.detail = fmt::format("at byte {:#x}", from);
    return error;
  }

  const ByteSource& file_;
  std::uint64_t data_ = 0;  // start of the data in the file
};

}  // namespace

Result<Header> read_header(const ByteSource& file) { return HeaderReader(file).read(); }

}  // namespace ggufmill::safetensors
