// The source `arrays`: its YAML file and the files it names.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "pipeline/config/written_value.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/arrays/arrays.h"
#include "stages/arrays/npy_header.h"

namespace ggufmill {
namespace arrays {
namespace {

constexpr std::uint64_t kMaxFileBytes = 64 << 20;  // size limit of the YAML file

struct ArrayEntry {
  std::string name{};
  std::optional<std::string> npy{}, raw{};  // paths
  const TypeInfo* type = nullptr;
  std::optional<std::vector<std::uint64_t>> shape{};  // in NumPy order
  std::optional<std::uint64_t> offset{};
  std::optional<bool> big_endian{};
  Origin origin{}, name_origin{}, file_origin{}, shape_origin{}, offset_origin{}, order_origin{};
};

struct Arrays {
  NamedValues<std::variant<MetadataValue, WrittenValue>> metadata{};
  std::vector<ArrayEntry> tensors{};
};

Form<NamedValues<std::variant<MetadataValue, WrittenValue>>> metadata_form() {
  using Value = std::variant<MetadataValue, WrittenValue>;
  const auto as_written = [](WrittenValue written) -> Value { return written; };
  const auto typed = map_of<TypedValue>(typed_value_fields()).at(&TypedValue::origin).doc("A value of a given type.");
  return dictionary_of(
      either<Value>(
          converted<Value>(
              written_scalar("true, false, a number, or a string. A known key has its known type; the type of another "
                             "is bool, float32, string, or the first of uint32, int32, uint64, and int64 that can hold "
                             "the value."),
              as_written),
          converted<Value>(written_list("An array; unless the key is known, its type follows from its elements."),
                           as_written),
          converted<Value>(typed,
                           [](const TypedValue& value) -> Result<Value> {
                             BOOST_OUTCOME_TRY(MetadataValue made, value_of(value));
                             return Value(std::move(made));
                           }))
          .doc("The value."));
}

// Element types include those that occur in sources alone.
Form<const TypeInfo*> element_type(const Types& types) {
  return converted<const TypeInfo*>(
      tensor_type(types, {"BOOL", "U8", "U16", "U32", "U64", "F8_E4M3", "F8_E5M2"}),
      [](const TypeInfo* type, const ConfigNode& node) { return type ? type : find_source_type(node.scalar); });
}

Form<Arrays> arrays_form(const Types& types) {
  using Entry = ArrayEntry;
  const auto tensor =
      map_of<Entry>(
          {
              field("name", &Entry::name, "The tensor name.")
                  .required()
                  .example("token_embd.weight")
                  .at(&Entry::name_origin),
              field("npy", &Entry::npy, path(), "A file written by numpy.save(); the path is relative to this file.")
                  .example("embeddings.npy")
                  .group("file")
                  .at(&Entry::file_origin),
              field("raw", &Entry::raw, path(), "A file with the tensor's raw bytes; requires type and shape.")
                  .example("weights.bin")
                  .group("file")
                  .at(&Entry::file_origin),
              field("type", &Entry::type, element_type(types),
                    "Element type of a raw file, or of a .npy file of plain bytes (V2).")
                  .example("BF16"),
              field("shape", &Entry::shape, list_of(integer().doc("A dimension.")),
                    "Dimensions of a raw tensor in NumPy order, with the row length last.")
                  .example("[128, 4096]")
                  .at(&Entry::shape_origin),
              field("offset", &Entry::offset, "Offset of the tensor in a raw file, in bytes.")
                  .shown_default("0")
                  .example("4096")
                  .at(&Entry::offset_origin),
              field("byte_order", &Entry::big_endian, word<bool>({{"little", false}, {"big", true}}),
                    "Byte order of a raw file.")
                  .shown_default("little")
                  .example("big")
                  .at(&Entry::order_origin),
          })
          .at(&Entry::origin)
          .doc("A tensor.");
  return map_of<Arrays>(
             {
                 field("metadata", &Arrays::metadata, metadata_form(), "Keys and their values, in output order.")
                     .example("{general.architecture: llama, llama.context_length: {type: uint32, value: 8192}}"),
                 field("tensors", &Arrays::tensors, list_of(tensor), "The tensors, in output order.")
                     .required()
                     .example("[{name: token_embd.weight, npy: embeddings.npy}]"),
             })
      .doc("A model made of separate arrays.");
}

Shape shape_of(std::vector<std::uint64_t> dims) {
  if (dims.empty()) dims.push_back(1);
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(dims.size());
  std::ranges::reverse_copy(dims, shape.dims.begin());
  return shape;
}

class ArraysReader {
 public:
  ArraysReader(const std::string& path, const Types& types) : path_(path), types_(types) {}

  Result<Model> read() {
    BOOST_OUTCOME_TRY(const std::string text, read_file());
    BOOST_OUTCOME_TRY(Arrays arrays, parse_document(text, path_, arrays_form(types_), types_));
    for (auto& [key, value] : arrays.metadata) {
      if (const auto* written = std::get_if<WrittenValue>(&value)) {
        BOOST_OUTCOME_TRY(value, value_for(key, *written, nullptr));
      }
      model_.metadata.set_at_end(key, std::get<MetadataValue>(std::move(value)));
    }
    for (const ArrayEntry& tensor : arrays.tensors) {
      BOOST_OUTCOME_TRY(read_tensor(tensor));
    }
    return std::move(model_);
  }

 private:
  Result<std::string> read_file() {
    BOOST_OUTCOME_TRY(const auto file, open_source(path_));
    if (file->bytes() > kMaxFileBytes)
      return input_error(path_, fmt::format("the file has {}, more than the limit of {}", human_bytes(file->bytes()),
                                            human_bytes(kMaxFileBytes)));
    std::string text(file->bytes(), '\0');
    BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
    model_.files.push_back(file->describe());
    return text;
  }

  Status read_tensor(const ArrayEntry& entry) {
    Tensor& tensor = model_.tensors.emplace_back();
    tensor.name = entry.name;
    if (!names_.insert(tensor.name).second)
      return error_at(entry.name_origin, fmt::format("two tensors are named {}", quoted_name(tensor.name)));
    if (entry.npy) {
      BOOST_OUTCOME_TRY(check_npy(entry));
      BOOST_OUTCOME_TRY(tensor.expression, read_npy(*entry.npy, entry.type));
    } else {
      if (!entry.type || !entry.shape)
        return error_at(entry.origin, "a raw file needs a type and a shape",
                        "write {raw: FILE, type: F32, shape: [128, 64]}");
      BOOST_OUTCOME_TRY(tensor.expression, read_raw(entry));
    }
    tensor.type = tensor.expression->type;
    return ok();
  }

  static Status check_npy(const ArrayEntry& entry) {
    const auto unwanted = [](const Origin& place, const char* key) {
      return error_at(place, fmt::format("a .npy file contains its own {}", key), "omit it");
    };
    if (entry.shape) return unwanted(entry.shape_origin, "shape");
    if (entry.offset) return unwanted(entry.offset_origin, "offset");
    if (entry.big_endian) return unwanted(entry.order_origin, "byte_order");
    return ok();
  }

  Result<std::shared_ptr<const ByteSource>> open(const std::string& name) {
    BOOST_OUTCOME_TRY(auto file, open_source(fs::path(path_).parent_path() / name));
    const auto known = std::ranges::find(model_.files, file->path(), [](const SourceRef& each) { return each->path; });
    if (known == model_.files.end()) model_.files.push_back(file->describe());
    return file;
  }

  Result<ExpressionRef> read_npy(const std::string& name, const TypeInfo* type) {
    BOOST_OUTCOME_TRY(const auto file, open(name));
    BOOST_OUTCOME_TRY(NpyHeader header, read_npy_header(*file, type));
    header.data.source = source_of(*file);
    if (header.fortran_order) std::ranges::reverse(header.dims);
    BOOST_OUTCOME_TRY(ExpressionRef array, expressions::extent(*header.type, shape_of(header.dims), header.data));
    if (!header.fortran_order || header.dims.size() < 2) return array;
    std::vector<std::uint32_t> order;
    for (std::uint32_t d = array->shape.rank; d-- > 0;) order.push_back(d);
    return expressions::transpose(std::move(array), std::move(order));
  }

  Result<ExpressionRef> read_raw(const ArrayEntry& entry) {
    const std::vector<std::uint64_t>& dims = *entry.shape;
    const TypeInfo& type = *entry.type;
    const auto wrong_shape = [&](std::string what) { return error_at(entry.shape_origin, std::move(what)); };
    if (dims.size() > 4) return wrong_shape(fmt::format("{} dimensions are more than the limit of 4", dims.size()));
    const auto elements = elements_of(dims);
    if (!elements) return wrong_shape("more than 2^63 - 1 elements");
    const Shape shape = shape_of(dims);
    if (shape.columns() % type.block_elements != 0)
      return wrong_shape(fmt::format("rows of {} elements are not a multiple of the block size {} of {}",
                                     shape.columns(), type.block_elements, type.name));
    const auto bytes = bytes_of(type, shape);
    if (!bytes) return wrong_shape(bytes.error().what);
    Extent data{nullptr, entry.offset.value_or(0), bytes.value(), entry.big_endian.value_or(false)};
    if (data.big_endian && !can_swap(type))
      return error_at(entry.order_origin, fmt::format("byte swapping of {} is not supported", type.name));
    BOOST_OUTCOME_TRY(const auto file, open(*entry.raw));
    if (data.offset > file->bytes() || data.bytes > file->bytes() - data.offset)
      return error_at(entry.file_origin,
                      fmt::format("{} of {} takes {} bytes from byte {}, past the end of the file of {}",
                                  describe(shape), type.name, data.bytes, data.offset, file->bytes()));
    data.source = source_of(*file);
    return expressions::extent(type, shape, data);
  }

  // Returns the description of a file, which all of its tensors share.
  SourceRef source_of(const ByteSource& file) const {
    return *std::ranges::find(model_.files, file.path(), [](const SourceRef& each) { return each->path; });
  }

  static std::optional<std::uint64_t> elements_of(const std::vector<std::uint64_t>& dims) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dim : dims)
      if (__builtin_mul_overflow(elements, std::max<std::uint64_t>(dim, 1), &elements) ||
          elements > static_cast<std::uint64_t>(INT64_MAX))
        return {};
    return std::ranges::count(dims, 0u) != 0 ? 0 : elements;
  }

  const std::string& path_;
  const Types& types_;
  Model model_;
  std::unordered_set<std::string> names_;
};

class ArraysSource final : public Source {
 public:
  ArraysSource(std::string path, Types types) : path_(std::move(path)), types_(std::move(types)) {}
  Result<Model> open() const override { return ArraysReader(path_, types_).read(); }

 private:
  std::string path_;
  Types types_;
};

}  // namespace
}  // namespace arrays

FieldSpec arrays_fields() { return arrays::arrays_form({}).spec; }

std::unique_ptr<Source> make_arrays_source(std::string path, Types types) {
  return std::make_unique<arrays::ArraysSource>(std::move(path), std::move(types));
}

SourceSpec arrays_source(Types types) {
  return source_spec(
      "arrays",
      path()
          .doc("A YAML file that describes a model made of separate arrays: metadata, and tensors in .npy and raw "
               "files.")
          .example("models/mine/arrays.yaml"),
      [types = std::move(types)](std::string path) { return make_arrays_source(std::move(path), types); });
}

}  // namespace ggufmill
