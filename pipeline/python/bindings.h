#pragma once
// Parts of the extension module ggufmill._native. Its public Python side is ggufmill/*.py, which checks and prepares
// arguments; this module calls the library.

#include <pybind11/pybind11.h>

#include <string>

#include "pipeline/api/context.h"

namespace ggufmill::python {

// A Context, shared by the Python objects that point into it.
using SharedContext = std::shared_ptr<const Context>;

// Converts text of a file or a path, which may contain arbitrary bytes, to a Python string.
pybind11::object text(const std::string& bytes);
pybind11::list texts(const std::vector<std::string>& lines);
// Returns the dimensions in reverse order, as numpy counts them.
pybind11::tuple numpy_shape(const Shape& shape);
// Returns the type of that name; raises an error with a suggestion if there is none.
const TypeInfo& type_of(const Context& context, const std::string& name);

using ContextClass = pybind11::class_<Context, std::shared_ptr<Context>>;
void bind_arrays(ContextClass& context);
void bind_models(pybind11::module_& module, ContextClass& context);
void bind_files(pybind11::module_& module, ContextClass& context);
void bind_jobs(pybind11::module_& module, ContextClass& context);

}  // namespace ggufmill::python
