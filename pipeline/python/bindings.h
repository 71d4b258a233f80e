#pragma once
// The parts of the extension module ggufmill._native. Its Python side, which users see, is ggufmill/*.py: that checks
// and prepares arguments, this calls the library.

#include <pybind11/pybind11.h>

#include <string>

#include "pipeline/api/ggufmill.h"

namespace ggufmill::python {

// A Context, which Python objects that point into it hold.
using SharedContext = std::shared_ptr<const Context>;

// Text of a file or a path, whatever its bytes are.
pybind11::object text(const std::string& bytes);
// Reversed, as numpy counts dimensions.
pybind11::tuple numpy_shape(const Shape& shape);
// Raises where there is none of that name, with what may be meant.
const TypeInfo& type_of(const Context& context, const std::string& name);

using ContextClass = pybind11::class_<Context, std::shared_ptr<Context>>;
void bind_arrays(ContextClass& context);
void bind_models(pybind11::module_& module, ContextClass& context);
void bind_files(pybind11::module_& module, ContextClass& context);
void bind_jobs(pybind11::module_& module, ContextClass& context);

}  // namespace ggufmill::python
