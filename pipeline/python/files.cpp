// Operations on files outside of jobs: verification, importance matrices, metadata; also the recipes.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "pipeline/api/edit.h"
#include "pipeline/api/merge_importance.h"
#include "pipeline/core/text.h"
#include "pipeline/python/bindings.h"
#include "pipeline/python/interruptible.h"

namespace ggufmill::python {

namespace py = pybind11;

namespace {

py::dict verify(const Context& context, const std::string& path, const std::string& manifest, unsigned threads,
                const py::object& progress) {
  const Verification found = value_or_raise(interruptible(
      [&](const std::atomic<bool>& stop, ProgressSlot& slot) {
        VerifyOptions options;
        options.manifest = manifest;
        options.threads = threads;
        options.stop = &stop;
        options.progress = read_progress(slot);
        return context.verify(path, options);
      },
      progress));
  py::dict made;
  made["files"] = texts(found.files);
  made["tensors"] = found.tensors;
  made["bytes"] = found.bytes;
  made["manifest"] = found.manifest.empty() ? py::object(py::none()) : text(found.manifest);
  made["warnings"] = texts(found.warnings);
  return made;
}

py::list recipes(const Context& context) {
  const RecipeCatalog catalog = context.recipes();
  py::list made;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    const Recipe recipe = value_or_raise(catalog.find(std::string(built_in.name)));
    py::dict each;
    each["name"] = recipe.name;
    each["aliases"] = recipe.aliases;
    each["file_type"] = recipe.file_type;
    each["type"] = recipe.type ? py::object(py::str(std::string(recipe.type->name))) : py::object(py::none());
    each["description"] = recipe.description;
    made.append(each);
  }
  return made;
}

std::shared_ptr<ImportanceFile> open_imatrix(const Context& context, const std::string& path) {
  return std::make_shared<ImportanceFile>(value_or_raise(interruptible([&](const std::atomic<bool>&, ProgressSlot&) {
    return open_importance(path, gguf_opener(context.kernels().types()));
  })));
}

// Returns weights of shape (columns,), or (parts, columns) if an entry has several parts: experts.
py::array weights_of(const ImportanceFile& file, const std::string& name) {
  const auto entry = std::ranges::find(file.entries, name, &ImportanceEntry::name);
  if (entry == file.entries.end()) throw py::key_error(name);
  const auto size = static_cast<py::ssize_t>(entry->size());
  const auto parts = static_cast<py::ssize_t>(std::max<std::uint64_t>(1, entry->counts.count));
  py::array made(py::dtype("f4"),
                 parts == 1 ? std::vector<py::ssize_t>{size} : std::vector<py::ssize_t>{parts, size / parts});
  const std::span into(static_cast<float*>(made.mutable_data()), entry->size());
  const Status read = interruptible([&](const std::atomic<bool>&, ProgressSlot&) { return entry->weights(0, into); });
  if (!read) raise(read.error());
  return made;
}

py::list names_of(const ImportanceFile& file) {
  py::list names;
  for (const ImportanceEntry& entry : file.entries) names.append(text(entry.name));
  return names;
}

// Converts a value passed from Python: a pair of text and a flag for quoted text, or a list of values.
WrittenValue written_of(const py::handle& value) {
  WrittenValue written;
  if (py::isinstance<py::list>(value)) {
    written.kind = WrittenValue::Kind::kList;
    for (const py::handle item : value) written.items.push_back(written_of(item));
    return written;
  }
  const auto [scalar, is_text] = value.cast<std::pair<std::string, bool>>();
  written.text = scalar;
  written.is_text = is_text;
  return written;
}

// Converts a tuple (key, value in the form of written_of(), name of its type or "").
MetadataSetting setting_of(const py::handle& given) {
  const auto parts = given.cast<py::tuple>();
  const auto key = parts[0].cast<std::string>(), type = parts[2].cast<std::string>();
  WrittenValue written = written_of(parts[1]);
  if (type.empty()) return {key, std::move(written)};
  return {key, value_or_raise(value_of(written, type))};
}

py::dict edit(const Context&, const std::string& path, const py::list& set, std::vector<std::string> remove,
              std::vector<std::pair<std::string, std::string>> rename, const std::string& output, bool overwrite,
              bool dry_run) {
  EditOptions options;
  for (const py::handle each : set) options.changes.set.push_back(setting_of(each));
  options.changes.remove = std::move(remove);
  options.changes.rename = std::move(rename);
  options.output = output;
  options.overwrite = overwrite;
  options.dry_run = dry_run;
  const Edited edited = value_or_raise(interruptible([&](const std::atomic<bool>& stop, ProgressSlot&) {
    options.stop = &stop;
    return edit_metadata(path, options);
  }));
  py::dict made;
  made["in_place"] = edited.in_place;
  made["restored"] = edited.restored;
  made["bytes"] = edited.bytes;
  made["keys"] = texts(edited.keys);
  made["warnings"] = texts(edited.warnings);
  return made;
}

}  // namespace

void bind_files(py::module_& module, ContextClass& context) {
  py::class_<ImportanceFile, std::shared_ptr<ImportanceFile>>(module, "ImportanceFile")
      .def_property_readonly("files", [](const ImportanceFile& self) { return texts(self.files); })
      .def_property_readonly("datasets", [](const ImportanceFile& self) { return texts(self.datasets); })
      .def_readonly("chunks", &ImportanceFile::chunks)
      .def("names", &names_of)
      .def("weights", &weights_of, py::arg("name"));
  context.def("verify", &verify, py::arg("path"), py::arg("manifest"), py::arg("threads"), py::arg("progress"))
      .def("recipes", &recipes)
      .def("imatrix", &open_imatrix, py::arg("path"))
      .def("edit", &edit, py::arg("path"), py::arg("set"), py::arg("remove"), py::arg("rename"), py::arg("output"),
           py::arg("overwrite"), py::arg("dry_run"));
}

}  // namespace ggufmill::python
