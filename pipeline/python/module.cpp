#include <fmt/format.h>
#include <pybind11/stl.h>

#include "pipeline/core/text.h"
#include "pipeline/graph/bind.h"
#include "pipeline/python/bindings.h"
#include "pipeline/python/interruptible.h"

namespace ggufmill::python {

namespace py = pybind11;

namespace {

std::shared_ptr<Context> make_context(std::vector<std::string> kernel_dirs, std::string isa) {
  return std::make_shared<Context>(value_or_raise(Context::create({std::move(kernel_dirs), std::move(isa)})));
}

// The same data as in `ggufmill types --json`.
py::list types_of(const Context& context) {
  py::list types;
  for (const TypeInfo* type : context.kernels().types().all()) {
    const KernelChoice* encode = context.kernels().encode(type->id);
    const std::uint32_t flags = encode ? encode->kernel->flags : 0;
    py::dict each;
    each["name"] = std::string(type->name);
    each["id"] = type->id;
    each["bits_per_weight"] = type->bits_per_weight();
    each["block_elements"] = type->block_elements;
    each["block_bytes"] = type->block_bytes;
    each["row_header_bytes"] = type->row_header_bytes;
    each["read"] = is_decodable(*type, context.kernels());
    each["write"] = type->is_f32() || encode;
    each["importance"] = flags & GGUFMILL_NEEDS_IMPORTANCE     ? "needed"
                         : flags & GGUFMILL_ACCEPTS_IMPORTANCE ? "used"
                                                               : "not used";
    types.append(each);
  }
  return types;
}

// Returns all modules that were examined.
py::list modules_of(const Context& context) {
  py::list modules;
  for (const ModuleReport& report : context.kernels().reports()) {
    py::dict each;
    each["path"] = text(report.path);
    each["name"] = text(report.name);
    each["version"] = text(report.version);
    each["isa"] = text(report.isa);
    each["loaded"] = report.loaded;
    each["why"] = text(report.refusal);
    modules.append(each);
  }
  return modules;
}

}  // namespace

py::object text(const std::string& bytes) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

py::list texts(const std::vector<std::string>& lines) {
  py::list made;
  for (const std::string& line : lines) made.append(text(line));
  return made;
}

py::tuple numpy_shape(const Shape& shape) {
  py::tuple reversed(shape.rank);
  for (std::uint32_t i = 0; i < shape.rank; ++i) reversed[i] = shape.dims[shape.rank - 1 - i];
  return reversed;
}

const TypeInfo& type_of(const Context& context, const std::string& name) {
  if (const TypeInfo* type = context.kernels().types().find(name)) return *type;
  if (const TypeInfo* type = find_source_type(name)) return *type;
  std::vector<std::string> names;
  for (const TypeInfo* type : context.kernels().types().all()) names.emplace_back(type->name);
  const std::string meant = did_you_mean(name, names);
  raise(usage_error("unknown type " + quoted_name(name),
                    (meant.empty() ? "" : "did you mean '" + meant + "'? ") + "`ggufmill.types()` lists them"));
}

}  // namespace ggufmill::python

PYBIND11_MODULE(_native, module) {
  using namespace ggufmill::python;
  namespace py = pybind11;
  module.attr("version") = GGUFMILL_VERSION;
  py::class_<ProgressNow>(module, "Progress", "Progress of an operation.")
      .def_readonly("bytes_read", &ProgressNow::bytes_read)
      .def_readonly("bytes_to_read", &ProgressNow::bytes_to_read)
      .def_readonly("bytes_written", &ProgressNow::bytes_written)
      .def_readonly("bytes_to_write", &ProgressNow::bytes_to_write)
      .def_property_readonly("tensor", [](const ProgressNow& now) { return text(now.tensor); })
      .def_readonly("seconds", &ProgressNow::seconds)
      .def("__repr__", [](const ProgressNow& now) {
        return fmt::format("<ggufmill.Progress {} of {} read, {} of {} written, {:.1f} s>",
                           ggufmill::human_bytes(now.bytes_read), ggufmill::human_bytes(now.bytes_to_read),
                           ggufmill::human_bytes(now.bytes_written), ggufmill::human_bytes(now.bytes_to_write),
                           now.seconds);
      });
  ContextClass context(module, "Context");
  context.def(py::init(&make_context), py::arg("kernel_dirs"), py::arg("isa"))
      .def("types", &types_of)
      .def("modules", &modules_of)
      .def_property_readonly("isa", [](const ggufmill::Context& self) { return self.kernels().isa(); });
  bind_arrays(context);
  bind_models(module, context);
  bind_files(module, context);
  bind_jobs(module, context);
}
