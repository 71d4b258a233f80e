// Quantization and decoding of numpy arrays.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "pipeline/core/rows.h"
#include "pipeline/core/text.h"
#include "pipeline/python/bindings.h"
#include "pipeline/python/interruptible.h"

namespace ggufmill::python {

namespace py = pybind11;

namespace {

std::span<const std::byte> bytes_of(const py::array& array) {
  return {static_cast<const std::byte*>(array.data()), static_cast<std::size_t>(array.nbytes())};
}

std::span<std::byte> writable_bytes_of(py::array& array) {
  return {static_cast<std::byte*>(array.mutable_data()), static_cast<std::size_t>(array.nbytes())};
}

void convert(const Context& context, const RowConversion& conversion, unsigned threads) {
  const Status made = interruptible([&](const std::atomic<bool>& stop, ProgressSlot&) {
    return context.convert_rows(conversion, {threads, &stop});
  });
  if (!made) raise(made.error());
}

// Returns the array for the result: `out`, which the caller has checked, or a new array.
py::array result(const py::object& out, const char* dtype, const std::vector<py::ssize_t>& shape) {
  if (out.is_none()) return py::array(py::dtype(dtype), shape);
  auto given = py::reinterpret_borrow<py::array>(out);
  if (!given.dtype().equal(py::dtype(dtype)) ||
      std::vector<py::ssize_t>(given.shape(), given.shape() + given.ndim()) != shape)
    raise(usage_error(fmt::format(
        "`out` is an array of {} {}, but the result is of {} {}", py::str(given.dtype()).cast<std::string>(),
        py::str(given.attr("shape")).cast<std::string>(), py::str(py::dtype(dtype)).cast<std::string>(),
        py::str(py::tuple(py::cast(shape))).cast<std::string>())));
  return given;
}

// `values`: numbers of type `from_name`, C-contiguous and aligned; `importance`: float32, C-contiguous, or None; `out`:
// None, or C-contiguous, aligned, writable and not overlapping `values`.
py::array quantize(const Context& context, const py::array& values, const std::string& from_name,
                   const std::string& to_name, const std::optional<py::array_t<float>>& importance,
                   const py::object& out, unsigned threads) {
  const TypeInfo &from = type_of(context, from_name), &to = type_of(context, to_name);
  const auto columns = static_cast<std::uint64_t>(values.shape(values.ndim() - 1));
  if (columns % to.block_elements != 0)
    raise(usage_error(fmt::format("rows of {} values are not a whole number of blocks of {}", columns, to.name),
                      fmt::format("{} has blocks of {}: the last axis of the array must be a multiple of that", to.name,
                                  to.block_elements)));
  std::vector<py::ssize_t> shape(values.shape(), values.shape() + values.ndim());
  shape.back() = static_cast<py::ssize_t>(row_bytes(to, columns));
  py::array made = result(out, "u1", shape);
  RowConversion conversion{&from, bytes_of(values), &to, writable_bytes_of(made), columns};
  if (importance) conversion.importance = {importance->data(), static_cast<std::size_t>(importance->size())};
  convert(context, conversion, threads);
  return made;
}

// A view of the bytes of any object with contiguous memory.
class Bytes {
 public:
  explicit Bytes(const py::object& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&view_); }
  std::span<const std::byte> span() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

py::array dequantize(const Context& context, const py::object& buffer, const std::string& from_name,
                     const std::vector<std::uint64_t>& shape, const py::object& out, unsigned threads) {
  const TypeInfo &from = type_of(context, from_name), &f32 = type_named("F32");
  const Bytes bytes(buffer);
  std::uint64_t elements = 1;
  for (const std::uint64_t each : shape) elements = capped_product(elements, each);
  const std::uint64_t columns = shape.empty() ? 1 : shape.back();
  if (columns % from.block_elements != 0)
    raise(usage_error(fmt::format("rows of {} values are not a whole number of blocks of {}", columns, from.name),
                      fmt::format("{} has blocks of {}: the last dimension of the shape must be a multiple of that",
                                  from.name, from.block_elements)));
  const std::uint64_t expected = columns == 0 ? 0 : capped_product(elements / columns, row_bytes(from, columns));
  if (expected != bytes.span().size())
    raise(usage_error(fmt::format("the buffer has {} bytes, but {} values of {} take {}", bytes.span().size(), elements,
                                  from.name, expected),
                      "`shape` must be the shape of the values: its last dimension counts values, not bytes"));
  std::vector<std::byte> aligned;  // copy of unaligned input
  std::span<const std::byte> values = bytes.span();
  if (reinterpret_cast<std::uintptr_t>(values.data()) % from.alignment() != 0) {
    aligned.assign(values.begin(), values.end());
    values = aligned;
  }
  py::array made = result(out, "f4", {shape.begin(), shape.end()});
  convert(context, {&from, values, &f32, writable_bytes_of(made), columns}, threads);
  return made;
}

}  // namespace

void bind_arrays(ContextClass& context) {
  context
      .def("quantize", &quantize, py::arg("values"), py::arg("from_type"), py::arg("to_type"), py::arg("importance"),
           py::arg("out"), py::arg("threads"))
      .def("dequantize", &dequantize, py::arg("buffer"), py::arg("type"), py::arg("shape"), py::arg("out"),
           py::arg("threads"));
}

}  // namespace ggufmill::python
