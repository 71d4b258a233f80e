#include "pipeline/python/interruptible.h"

#include <system_error>

#include "pipeline/python/bindings.h"

namespace ggufmill::python {

namespace py = pybind11;

py::object to_python(const Error& error) {
  py::list also;
  for (const Error& other : error.also) also.append(to_python(other));
  Error alone = error;
  alone.also.clear();
  return py::module_::import("ggufmill._error")
      .attr("error_of")(text(render(alone)), text(error.where), text(error.what), text(error.detail), text(error.help),
                        static_cast<int>(error.code), also);
}

void raise(const Error& error) {
  const py::object exception = to_python(error);
  PyErr_SetObject(py::type::handle_of(exception).ptr(), exception.ptr());
  throw py::error_already_set();
}

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    raise(Error{ExitCode::kTransient, "", std::string("cannot start a thread: ") + error.what(), "",
                "allow more processes and threads (ulimit -u), or try again later"});
  }
}

void wait_for(const std::function<bool(std::chrono::milliseconds)>& wait, std::atomic<bool>& stop, ProgressSlot& slot,
              const py::object& progress) {
  constexpr std::chrono::milliseconds kBetween{50};
  const auto wait_without_gil = [&] {
    const py::gil_scoped_release release;
    return wait(kBetween);
  };
  const auto show = [&] {
    ProgressNow now;
    if (slot.take(now) && !progress.is_none()) progress(now);
  };
  try {
    while (!wait_without_gil()) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      show();
    }
    show();
  } catch (...) {  // for any exception, the work has to end first
    stop = true;
    while (!wait_without_gil()) {
    }
    throw;
  }
}

}  // namespace ggufmill::python
