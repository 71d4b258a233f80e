// Models in files: metadata and tensors.
#include <pybind11/numpy.h>

#include "pipeline/python/bindings.h"
#include "pipeline/python/interruptible.h"

namespace ggufmill::python {

namespace py = pybind11;

namespace {

// Returns the numpy type of a metadata type; null for strings and arrays.
const char* dtype_of(MetadataType type) {
  switch (type) {
    case MetadataType::kUint8:
      return "u1";
    case MetadataType::kInt8:
      return "i1";
    case MetadataType::kUint16:
      return "u2";
    case MetadataType::kInt16:
      return "i2";
    case MetadataType::kUint32:
      return "u4";
    case MetadataType::kInt32:
      return "i4";
    case MetadataType::kFloat32:
      return "f4";
    case MetadataType::kBool:
      return "?";
    case MetadataType::kUint64:
      return "u8";
    case MetadataType::kInt64:
      return "i8";
    case MetadataType::kFloat64:
      return "f8";
    case MetadataType::kString:
    case MetadataType::kArray:
      break;
  }
  return nullptr;
}

py::object value_of(const MetadataValue& value) {
  if (const auto string = as_string(value)) return text(std::string(*string));
  if (const auto truth = as_bool(value)) return py::bool_(*truth);
  if (const auto array = as_array(value)) {
    if (const char* dtype = dtype_of(array->element))
      return py::array(py::dtype(dtype), {static_cast<py::ssize_t>(array->count)}, array->bytes.data());
    py::list items;
    for_each_item(value, [&](const MetadataValue& item) {
      items.append(value_of(item));
      return true;
    });
    return items;
  }
  if (const auto natural = as_unsigned(value)) return py::int_(*natural);
  if (const auto integer = as_signed(value)) return py::int_(*integer);
  return py::float_(as_number(value).value());
}

std::string type_name(const MetadataValue& value) {
  const auto array = as_array(value);
  return array ? "array of " + std::string(metadata_type_name(array->element))
               : std::string(metadata_type_name(value.type));
}

// The result of inspect(), with the context into which it points.
struct OpenModel {
  SharedContext context;
  Model model;

  const MetadataValue* find(const std::string& key) const { return model.metadata.find(key); }
};
using SharedModel = std::shared_ptr<const OpenModel>;

struct OpenTensor {
  SharedModel model;
  const Tensor* tensor;

  const Expression& expression() const { return *tensor->expression; }

  // Returns unconverted rows, one row of bytes each, or rows as float32.
  py::array read(std::uint64_t first, std::uint64_t rows, bool as_f32, unsigned threads) const {
    const TypeInfo& to = as_f32 ? type_named("F32") : *expression().type;
    const std::uint64_t columns = expression().shape.columns();
    const std::uint64_t row = as_f32 ? columns : expression().row_bytes();
    py::array made(py::dtype(as_f32 ? "f4" : "u1"), {rows, row});
    const std::span into(static_cast<std::byte*>(made.mutable_data()), static_cast<std::size_t>(made.nbytes()));
    const Status status = interruptible([&](const std::atomic<bool>& stop, ProgressSlot&) {
      return model->context->read_rows({tensor, first, rows, &to, into}, {threads, &stop});
    });
    if (!status) raise(status.error());
    return made;
  }

  // Returns the location (path, offset, big-endian) if all bytes are contiguous; None if the tensor has to be
  // assembled.
  py::object extent() const {
    const Extent* extent = expression().as_extent();
    if (!extent) return py::none();
    return py::make_tuple(text(extent->source->path), extent->offset, extent->big_endian);
  }
};

SharedModel open(const SharedContext& context, const std::string& path) {
  Result<Model> model = interruptible([&](const std::atomic<bool>&, ProgressSlot&) { return context->inspect(path); });
  return std::make_shared<OpenModel>(OpenModel{context, value_or_raise(std::move(model))});
}

py::list tensors_of(const SharedModel& model) {
  py::list tensors;
  for (const Tensor& tensor : model->model.tensors) tensors.append(OpenTensor{model, &tensor});
  return tensors;
}

// Returns (path, bytes, modification time in nanoseconds) for each file, as of when its header was read.
py::list files_of(const OpenModel& model) {
  py::list files;
  for (const SourceRef& file : model.model.files)
    files.append(py::make_tuple(text(file->path), file->bytes, file->modified));
  return files;
}

py::list warnings_of(const OpenModel& model) {
  py::list warnings;
  for (const std::string& warning : model.model.warnings) warnings.append(text(warning));
  return warnings;
}

py::list keys_of(const OpenModel& model) {
  py::list keys;
  for (const MetadataEntry& entry : model.model.metadata.entries()) keys.append(text(entry.key));
  return keys;
}

}  // namespace

void bind_models(py::module_& module, ContextClass& context) {
  py::class_<OpenTensor>(module, "Tensor")
      .def_property_readonly("name", [](const OpenTensor& self) { return text(self.tensor->name); })
      .def_property_readonly("type", [](const OpenTensor& self) { return std::string(self.expression().type->name); })
      .def_property_readonly("shape", [](const OpenTensor& self) { return numpy_shape(self.expression().shape); })
      .def_property_readonly("nbytes", [](const OpenTensor& self) { return self.expression().bytes(); })
      .def_property_readonly("row_bytes", [](const OpenTensor& self) { return self.expression().row_bytes(); })
      .def_property_readonly("rows", [](const OpenTensor& self) { return self.expression().shape.rows(); })
      .def_property_readonly("extent", &OpenTensor::extent)
      .def("read", &OpenTensor::read, py::arg("first"), py::arg("rows"), py::arg("as_f32"), py::arg("threads"));
  py::class_<OpenModel, std::shared_ptr<OpenModel>>(module, "Model")
      .def_property_readonly("files", &files_of)
      .def_property_readonly("warnings", &warnings_of)
      .def("keys", &keys_of)
      .def("value",
           [](const OpenModel& self, const std::string& key) {
             const MetadataValue* value = self.find(key);
             return value ? value_of(*value) : throw py::key_error(key);
           })
      .def("value_type",
           [](const OpenModel& self, const std::string& key) {
             const MetadataValue* value = self.find(key);
             return value ? type_name(*value) : throw py::key_error(key);
           })
      .def("has", [](const OpenModel& self, const std::string& key) { return self.find(key) != nullptr; })
      .def("tensors", [](const std::shared_ptr<OpenModel>& self) { return tensors_of(self); });
  context.def("open", [](const std::shared_ptr<Context>& self, const std::string& path) {
    return std::const_pointer_cast<OpenModel>(open(self, path));
  });
}

}  // namespace ggufmill::python
