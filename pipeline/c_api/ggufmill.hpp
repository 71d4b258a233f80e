// libggufmill for C++17: objects that free themselves, std::string, and exceptions, around the functions of ggufmill.h,
// which documents options, results, ownership and threads.
//
//   ggufmill::Context context;
//   ggufmill::Control control([&](const ggufmill_progress& now) { ... });
//   std::string report = context.open_job("job.yaml").run(R"({"overwrite": true})", &control);
#ifndef GGUFMILL_HPP
#define GGUFMILL_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ggufmill.h"

#ifdef __GNUC__  // functions that are deprecated call those of ggufmill.h
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace ggufmill {

// One of the problems that a call found; see ggufmill_error_where() and the functions after it.
struct Problem {
  ggufmill_status code;
  std::string where, what, detail, help;
};

// Thrown by everything in this header that fails. what() is the text that the program would print.
class Error : public std::runtime_error {
 public:
  // Takes the error over; `error` may be null.
  Error(ggufmill_status code, ggufmill_error* error) : std::runtime_error(ggufmill_error_text(error)), code_(code) {
    const std::unique_ptr<ggufmill_error, void (*)(ggufmill_error*)> owned(error, ggufmill_error_free);
    for (std::size_t i = 0; i < ggufmill_error_count(error); ++i)
      problems_.push_back({ggufmill_error_code(error, i), ggufmill_error_where(error, i), ggufmill_error_what(error, i),
                           ggufmill_error_detail(error, i), ggufmill_error_help(error, i)});
  }
  // An error of the call itself.
  explicit Error(const std::string& what) : std::runtime_error(what), code_(GGUFMILL_ERROR_USAGE) {
    problems_.push_back({code_, "", what, "", ""});
  }
  ggufmill_status code() const noexcept { return code_; }
  const std::vector<Problem>& problems() const noexcept { return problems_; }

 private:
  ggufmill_status code_;
  std::vector<Problem> problems_;
};

// Watches and cancels operations. An exception of the progress function cancels the operation and is rethrown by it.
// Must outlive the operations; not movable.
class Control {
 public:
  explicit Control(std::function<void(const ggufmill_progress&)> progress = {}) : progress_(std::move(progress)) {
    control_ = ggufmill_control_create(progress_ ? &Control::show : nullptr, this);
    if (!control_) throw std::bad_alloc();
  }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control() { ggufmill_control_free(control_); }

  // May be called from any thread, from the progress function, and from a signal handler.
  void cancel() noexcept { ggufmill_control_cancel(control_); }

  ggufmill_control* get() const noexcept { return control_; }
  // Rethrows what the progress function threw, if anything, in place of `error`, which is then freed.
  void rethrow(ggufmill_error* error = nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!thrown_) return;
    ggufmill_error_free(error);
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  static void show(const ggufmill_progress* progress, void* self) noexcept {
    auto* const control = static_cast<Control*>(self);
    try {
      control->progress_(*progress);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(control->mutex_);
      control->thrown_ = std::current_exception();
      control->cancel();
    }
  }

  std::function<void(const ggufmill_progress&)> progress_;
  ggufmill_control* control_ = nullptr;
  std::mutex mutex_;  // of `thrown_`: operations that share a control report their progress on their own threads
  std::exception_ptr thrown_;
};

namespace detail {

inline ggufmill_control* get(Control* control) { return control ? control->get() : nullptr; }

// Calls a function with its last parameter; throws if it fails.
template <class Function>
void call(const Function& function, Control* control = nullptr) {
  ggufmill_error* error = nullptr;
  const ggufmill_status status = function(&error);
  if (control) control->rethrow(error);
  if (status != GGUFMILL_SUCCESS) throw Error(status, error);
}

// Returns the number of rows; throws if `elements` is 0 or not a multiple of `row`.
inline std::uint64_t rows_of(std::uint64_t elements, std::uint64_t row, const char* name) {
  if (elements == 0 || row == 0 || elements % row != 0)
    throw Error(std::to_string(elements) + " " + name + " are not a whole number of rows of " + std::to_string(row));
  return elements / row;
}

// call() for a function that stores a string in its last but one parameter.
template <class Function>
std::string text(const Function& function, Control* control = nullptr) {
  char* made = nullptr;
  const auto free = [](char** text) { ggufmill_free(*text); };
  const std::unique_ptr<char*, decltype(free)> owned(&made, free);
  call([&](ggufmill_error** error) { return function(&made, error); }, control);
  return made ? made : "";
}

template <class T, void (*free_handle)(T*)>
struct Free {
  void operator()(T* handle) const noexcept { free_handle(handle); }
};
template <class T, void (*free_handle)(T*)>
using Handle = std::unique_ptr<T, Free<T, free_handle>>;

}  // namespace detail

// The plan of a job. `options` and results are as of Job.
class Plan {
 public:
  explicit Plan(ggufmill_plan* plan) : plan_(plan) {}
  ggufmill_plan* get() const noexcept { return plan_.get(); }

  // Throws if the plan has problems.
  void check() const {
    detail::call([&](auto error) { return ggufmill_plan_check(get(), error); });
  }
  std::string describe(const char* options = nullptr) const {
    return detail::text([&](auto text, auto error) { return ggufmill_plan_describe(get(), options, text, error); });
  }
  std::string run(const char* options = nullptr, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_plan_run(get(), options, detail::get(control), text, error); },
        control);
  }

 private:
  detail::Handle<ggufmill_plan, ggufmill_plan_free> plan_;
};

// A pipeline file. `options` and results are JSON texts, and may be null where ggufmill.h calls them optional.
class Job {
 public:
  explicit Job(ggufmill_job* job) : job_(job) {}
  ggufmill_job* get() const noexcept { return job_.get(); }

  // Throws if a run could not start.
  void check(const char* options = nullptr) const {
    detail::call([&](auto error) { return ggufmill_job_check(get(), options, error); });
  }
  std::string plan(const char* options = nullptr) const {
    return detail::text([&](auto text, auto error) { return ggufmill_job_plan(get(), options, text, error); });
  }
  // Returns a plan that can be run as it is.
  Plan make_plan() const {
    ggufmill_plan* made = nullptr;
    detail::call([&](auto error) { return ggufmill_plan_create(get(), &made, error); });
    return Plan(made);
  }
  std::string run(const char* options = nullptr, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_job_run(get(), options, detail::get(control), text, error); },
        control);
  }
  std::string status() const {
    return detail::text([&](auto text, auto error) { return ggufmill_job_status(get(), text, error); });
  }
  void discard() const {
    detail::call([&](auto error) { return ggufmill_job_discard(get(), error); });
  }
  std::string submit(const char* options = nullptr) const {
    return detail::text([&](auto text, auto error) { return ggufmill_job_submit(get(), options, text, error); });
  }
  std::string measure(const char* options = nullptr, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_job_measure(get(), options, detail::get(control), text, error); },
        control);
  }
  std::string curve(const char* options = nullptr, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_job_curve(get(), options, detail::get(control), text, error); },
        control);
  }
  void probe(const char* options, Control* control = nullptr) const {
    detail::call([&](auto error) { return ggufmill_job_probe(get(), options, detail::get(control), error); }, control);
  }

 private:
  detail::Handle<ggufmill_job, ggufmill_job_free> job_;
};

// The folder of a cluster job, which Job::submit() creates.
class ClusterJob {
 public:
  explicit ClusterJob(std::string folder) : folder_(std::move(folder)) {}

  std::string status() const {
    return detail::text([&](auto text, auto error) { return ggufmill_cluster_status(name(), text, error); });
  }
  std::string run_part(std::uint64_t part, const char* options = nullptr, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) {
          return ggufmill_cluster_part(name(), part, options, detail::get(control), text, error);
        },
        control);
  }
  std::string seal(const char* options = nullptr, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) {
          return ggufmill_cluster_seal(name(), options, detail::get(control), text, error);
        },
        control);
  }
  std::string resume(const char* options = nullptr) const {
    return detail::text([&](auto text, auto error) { return ggufmill_cluster_resume(name(), options, text, error); });
  }
  void cancel(const char* options = nullptr) const {
    detail::call([&](auto error) { return ggufmill_cluster_cancel(name(), options, error); });
  }
  std::string render(const char* options) const {
    return detail::text([&](auto text, auto error) { return ggufmill_cluster_render(name(), options, text, error); });
  }

 private:
  const char* name() const noexcept { return folder_.c_str(); }

  std::string folder_;
};

// An importance file that is open for reading.
class Importance {
 public:
  explicit Importance(ggufmill_importance* importance) : importance_(importance) {}
  ggufmill_importance* get() const noexcept { return importance_.get(); }

  std::string list() const {
    return detail::text([&](auto text, auto error) { return ggufmill_importance_list(get(), text, error); });
  }
  // Returns the weights of an entry, whose number and count list() has.
  std::vector<float> weights(std::size_t index, std::uint64_t count) const {
    std::vector<float> into(count);
    detail::call([&](auto error) { return ggufmill_importance_weights(get(), index, into.data(), count, error); });
    return into;
  }

 private:
  detail::Handle<ggufmill_importance, ggufmill_importance_free> importance_;
};

// A model that is open for reading.
class Model {
 public:
  explicit Model(ggufmill_model* model) : model_(model) {}
  ggufmill_model* get() const noexcept { return model_.get(); }

  [[deprecated("use Context::call(\"inspect\", ...)")]] std::string describe() const {
    return detail::text([&](auto text, auto error) { return ggufmill_model_describe(get(), text, error); });
  }
  std::string warnings() const {
    return detail::text([&](auto text, auto error) { return ggufmill_model_warnings(get(), text, error); });
  }
  std::size_t file_count() const noexcept { return ggufmill_model_file_count(get()); }
  ggufmill_file file(std::size_t index) const {
    ggufmill_file file{};
    file.size = sizeof file;
    detail::call([&](auto error) { return ggufmill_model_file(get(), index, &file, error); });
    return file;
  }
  std::size_t metadata_count() const noexcept { return ggufmill_model_metadata_count(get()); }
  ggufmill_metadata metadata(std::size_t index) const {
    ggufmill_metadata entry{};
    entry.size = sizeof entry;
    detail::call([&](auto error) { return ggufmill_model_metadata(get(), index, &entry, error); });
    return entry;
  }
  std::size_t tensor_count() const noexcept { return ggufmill_model_tensor_count(get()); }
  ggufmill_tensor tensor(std::size_t index) const {
    ggufmill_tensor tensor{};
    tensor.size = sizeof tensor;
    detail::call([&](auto error) { return ggufmill_model_tensor(get(), index, &tensor, error); });
    return tensor;
  }
  ggufmill_tensor tensor(const std::string& name) const {
    ggufmill_tensor tensor{};
    tensor.size = sizeof tensor;
    detail::call([&](auto error) { return ggufmill_model_find(get(), name.c_str(), &tensor, error); });
    return tensor;
  }
  // Returns the values of rows [first, first + rows).
  std::vector<float> rows(const std::string& name, std::uint64_t first, std::uint64_t rows, unsigned threads = 0,
                          Control* control = nullptr) const {
    std::vector<float> values(rows * tensor_with(name, first, rows).columns);
    read(name, first, rows, "F32", values.data(), values.size() * sizeof(float), threads, control);
    return values;
  }
  // Returns the bytes of rows [first, first + rows) in the tensor's own type.
  std::vector<unsigned char> raw_rows(const std::string& name, std::uint64_t first, std::uint64_t rows,
                                      unsigned threads = 0, Control* control = nullptr) const {
    std::vector<unsigned char> bytes(rows * tensor_with(name, first, rows).row_bytes);
    read(name, first, rows, nullptr, bytes.data(), bytes.size(), threads, control);
    return bytes;
  }
  [[deprecated("use Context::call(\"inspect\", ...)")]] std::string statistics(const std::string& name,
                                                                               const char* options = nullptr,
                                                                               Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) {
          return ggufmill_model_statistics(get(), name.c_str(), options, detail::get(control), text, error);
        },
        control);
  }
  [[deprecated("use Context::call(\"name_of\", ...)")]] std::string file_name(const char* options = nullptr) const {
    return detail::text([&](auto text, auto error) { return ggufmill_model_name(get(), options, text, error); });
  }
  [[deprecated("use Context::call(\"recipe_from\", ...)")]] std::string recipe() const {
    return detail::text([&](auto text, auto error) { return ggufmill_recipe_from(get(), text, error); });
  }
  [[deprecated("use Context::call(\"recipe_check\", ...)")]] std::string check_recipe(const std::string& recipe) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_recipe_check(get(), recipe.c_str(), text, error); });
  }
  [[deprecated("use Context::call(\"recipe_diff\", ...)")]] std::string compare_recipes(const std::string& a,
                                                                                        const std::string& b) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_recipe_diff(get(), a.c_str(), b.c_str(), text, error); });
  }

 private:
  ggufmill_tensor tensor_with(const std::string& name, std::uint64_t first, std::uint64_t rows) const {
    const ggufmill_tensor found = tensor(name);
    if (rows == 0 || first > found.rows || rows > found.rows - first)
      throw Error("the tensor '" + name + "' has " + std::to_string(found.rows) + " rows, but " + std::to_string(rows) +
                  " from row " + std::to_string(first) + " on were requested");
    return found;
  }
  void read(const std::string& name, std::uint64_t first, std::uint64_t rows, const char* type, void* into,
            std::uint64_t bytes, unsigned threads, Control* control) const {
    detail::call(
        [&](auto error) {
          return ggufmill_model_read_rows(get(), name.c_str(), first, rows, type, into, bytes, threads,
                                          detail::get(control), error);
        },
        control);
  }

  detail::Handle<ggufmill_model, ggufmill_model_free> model_;
};

// Writes a page with pictures of models.
[[deprecated("use Context::call(\"models_page\", ...)")]] inline void write_models_page(
    const std::vector<const Model*>& models, const std::string& path, const char* options = nullptr) {
  std::vector<const ggufmill_model*> handles;
  for (const Model* model : models) handles.push_back(model->get());
  detail::call(
      [&](auto error) { return ggufmill_models_page(handles.data(), handles.size(), path.c_str(), options, error); });
}

// The library with its kernels.
class Context {
 public:
  explicit Context(const char* options = nullptr) {
    ggufmill_context* made = nullptr;
    detail::call([&](auto error) { return ggufmill_context_create(options, &made, error); });
    context_.reset(made);
  }
  ggufmill_context* get() const noexcept { return context_.get(); }

  [[deprecated("use call(\"types\")")]] std::string types() const {
    return detail::text([&](auto text, auto error) { return ggufmill_types(get(), text, error); });
  }
  [[deprecated("use call(\"kernels\")")]] std::string kernels() const {
    return detail::text([&](auto text, auto error) { return ggufmill_kernels(get(), text, error); });
  }

  Job open_job(const std::string& path, const char* options = nullptr) const {
    ggufmill_job* made = nullptr;
    detail::call([&](auto error) { return ggufmill_job_open(get(), path.c_str(), options, &made, error); });
    return Job(made);
  }
  Job parse_job(const std::string& text, const std::string& name, const char* options = nullptr) const {
    ggufmill_job* made = nullptr;
    detail::call(
        [&](auto error) { return ggufmill_job_parse(get(), text.c_str(), name.c_str(), options, &made, error); });
    return Job(made);
  }
  std::string pipeline_of(const std::string& tool, const char* options) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_pipeline_of(get(), tool.c_str(), options, text, error); });
  }
  Importance open_importance(const std::string& path) const {
    ggufmill_importance* made = nullptr;
    detail::call([&](auto error) { return ggufmill_importance_open(get(), path.c_str(), &made, error); });
    return Importance(made);
  }
  Model open_model(const std::string& path, const char* options = nullptr) const {
    ggufmill_model* made = nullptr;
    detail::call([&](auto error) { return ggufmill_model_open(get(), path.c_str(), options, &made, error); });
    return Model(made);
  }

  std::uint64_t row_bytes(const std::string& type, std::uint64_t columns) const {
    std::uint64_t bytes = 0;
    detail::call([&](auto error) { return ggufmill_row_bytes(get(), type.c_str(), columns, &bytes, error); });
    return bytes;
  }
  // Converts rows of `columns` values each. `importance`: one weight per column, or empty.
  std::vector<unsigned char> quantize(const std::string& type, const std::vector<float>& values, std::uint64_t columns,
                                      const std::vector<float>& importance = {}, unsigned threads = 0,
                                      Control* control = nullptr) const {
    const std::uint64_t rows = detail::rows_of(values.size(), columns, "values");
    if (!importance.empty() && importance.size() != columns)
      throw Error("there are " + std::to_string(importance.size()) + " weights for " + std::to_string(columns) +
                  " columns");
    std::vector<unsigned char> bytes(rows * row_bytes(type, columns));
    detail::call(
        [&](auto error) {
          return ggufmill_quantize_rows(get(), type.c_str(), nullptr, values.data(), rows, columns,
                                        importance.empty() ? nullptr : importance.data(), 1, bytes.data(), bytes.size(),
                                        threads, detail::get(control), error);
        },
        control);
    return bytes;
  }
  // Replaces the levels of encoded rows of `columns` values each. `covariance`: columns * columns numbers.
  void choose_levels(const std::string& type, const std::vector<float>& values, std::uint64_t columns,
                     const std::vector<double>& covariance, unsigned sweeps, std::vector<unsigned char>& encoded,
                     unsigned threads = 0, Control* control = nullptr) const {
    const std::uint64_t rows = detail::rows_of(values.size(), columns, "values");
    if (columns != 0 && (covariance.size() % columns != 0 || covariance.size() / columns != columns))
      throw Error("a covariance of " + std::to_string(covariance.size()) + " numbers is not one of " +
                  std::to_string(columns) + " columns");
    detail::call(
        [&](auto error) {
          return ggufmill_choose_levels(get(), type.c_str(), values.data(), rows, columns, covariance.data(), sweeps,
                                        encoded.data(), encoded.size(), threads, detail::get(control), error);
        },
        control);
  }
  std::vector<float> decode(const std::string& type, const std::vector<unsigned char>& bytes, std::uint64_t columns,
                            unsigned threads = 0, Control* control = nullptr) const {
    const std::uint64_t rows = detail::rows_of(bytes.size(), row_bytes(type, columns), "bytes");
    std::vector<float> values(rows * columns);
    detail::call(
        [&](auto error) {
          return ggufmill_decode_rows(get(), type.c_str(), bytes.data(), bytes.size(), rows, columns, values.data(),
                                      threads, detail::get(control), error);
        },
        control);
    return values;
  }

  [[deprecated("use call(\"check_module\", ...)")]] std::string check_module(const std::string& path,
                                                                             const char* options = nullptr,
                                                                             Control* control = nullptr) const {
    return tool(ggufmill_check_module, path, options, control);
  }
  // Carries out an operation, such as "verify"; `request` is a JSON object with its options. See ggufmill_call().
  std::string call(const std::string& operation, const std::string& request = {}, Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) {
          return ggufmill_call(get(), operation.c_str(), request.c_str(), detail::get(control), text, error);
        },
        control);
  }
  [[deprecated("use call(\"verify\", ...)")]] std::string verify(const std::string& path, const char* options = nullptr,
                                                                 Control* control = nullptr) const {
    return tool(ggufmill_verify, path, options, control);
  }
  [[deprecated("use call(\"compare\", ...)")]] std::string compare(const std::string& a, const std::string& b,
                                                                   const char* options = nullptr,
                                                                   Control* control = nullptr) const {
    return detail::text(
        [&](auto text, auto error) {
          return ggufmill_compare(get(), a.c_str(), b.c_str(), options, detail::get(control), text, error);
        },
        control);
  }
  [[deprecated("use call(\"hash\", ...)")]] std::string hash(const std::string& path, const char* options = nullptr,
                                                             Control* control = nullptr) const {
    return tool(ggufmill_hash, path, options, control);
  }
  [[deprecated("use call(\"edit\", ...)")]] std::string edit(const std::string& path, const char* options,
                                                             Control* control = nullptr) const {
    return tool(ggufmill_edit, path, options, control);
  }
  [[deprecated("use call(\"imatrix_show\", ...)")]] std::string describe_importance(const std::string& path) const {
    return detail::text(
        [&](auto text, auto error) { return ggufmill_importance_describe(get(), path.c_str(), text, error); });
  }
  [[deprecated("use call(\"imatrix_merge\", ...)")]] std::string merge_importance(const char* options) const {
    return detail::text([&](auto text, auto error) { return ggufmill_importance_merge(get(), options, text, error); });
  }

 private:
  template <class Function>
  std::string tool(const Function& function, const std::string& path, const char* options, Control* control) const {
    return detail::text(
        [&](auto text, auto error) {
          return function(get(), path.c_str(), options, detail::get(control), text, error);
        },
        control);
  }

  detail::Handle<ggufmill_context, ggufmill_context_free> context_;
};

// See ggufmill_catalog() and the functions after it.
[[deprecated("use Context::call(\"recipes\", ...)")]] inline std::string catalog(const std::string& kind) {
  return detail::text([&](auto text, auto error) { return ggufmill_catalog(kind.c_str(), text, error); });
}
[[deprecated("use Context::call(\"recipe\", ...)")]] inline std::string catalog_text(const std::string& kind,
                                                                                     const std::string& name) {
  return detail::text(
      [&](auto text, auto error) { return ggufmill_catalog_text(kind.c_str(), name.c_str(), text, error); });
}
[[deprecated("use Context::call(\"schema\", ...)")]] inline std::string schema(const std::string& kind) {
  return detail::text([&](auto text, auto error) { return ggufmill_schema(kind.c_str(), text, error); });
}
[[deprecated("use Context::call(\"name\", ...)")]] inline std::string parse_name(const std::string& name) {
  return detail::text([&](auto text, auto error) { return ggufmill_parse_name(name.c_str(), text, error); });
}

}  // namespace ggufmill

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#endif
