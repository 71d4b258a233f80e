// Models of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstddef>
#include <cstring>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/core/text.h"

namespace ggufmill::c {
namespace {

Result<const Tensor*> find_tensor(const Model& model, const std::string& name) {
  Strings names;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.name == name) return &tensor;
    names.push_back(tensor.name);
  }
  const std::string meant = did_you_mean(name, names);
  return usage_error(fmt::format("the model has no tensor {}", quoted_name(name)),
                     meant.empty() ? "" : fmt::format("did you mean '{}'?", meant));
}

// Copies the members that both sides know. `least` is the size in version 0.1. A program built with a later version has
// a larger struct, whose new members stay as they are; one built with an earlier version than the library gets the
// members that it knows.
template <class Struct>
Status store(const char* name, std::size_t least, Struct known, Struct& into) {
  if (into.size < least)
    return usage_error(fmt::format("{}.size is {}, less than {}", name, into.size, least),
                       fmt::format("set it to sizeof({})", name));
  known.size = into.size;
  std::memcpy(&into, &known, std::min(into.size, sizeof known));
  return ok();
}

Status check_number(const char* what, std::size_t index, std::size_t count) {
  if (index < count) return ok();
  return usage_error(fmt::format("{} {} does not exist", what, index),
                     fmt::format("the model has {}, numbered from 0", count));
}

Status describe(const Model& model, const Tensor& from, ggufmill_tensor& into) {
  static_assert(std::size(ggufmill_tensor{}.shape) >= std::tuple_size_v<decltype(Shape::dims)>);
  const Shape& shape = from.shape();
  ggufmill_tensor known{};
  known.name = from.name.c_str();
  known.type = from.source_type().name.data();  // names of types end with a zero
  known.dimensions = shape.rank;
  std::ranges::fill(known.shape, 1);
  std::ranges::copy(shape.dims, known.shape);
  known.rows = shape.rows();
  known.columns = shape.columns();
  known.row_bytes = from.expression->row_bytes();
  known.file = SIZE_MAX;
  if (const Extent* const extent = from.expression->as_extent()) {
    known.file = static_cast<std::size_t>(std::ranges::find(model.files, extent->source) - model.files.begin());
    known.offset = extent->offset;
    known.big_endian = extent->big_endian;
  }
  return store("ggufmill_tensor", offsetof(ggufmill_tensor, row_bytes) + sizeof known.row_bytes, known, into);
}

struct OpenRequest {
  OutType out_type = OutType::kAuto;
};

Result<OutType> read_out_type(const char* options) {
  OpenRequest request;
  const auto out_type = option("outtype", &OpenRequest::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp);
  BOOST_OUTCOME_TRY(read_options(options, {{{out_type}, &request}}));
  return request.out_type;
}

Status read(const ggufmill_model& model, const char* name, const char* type, RowsOfTensor rows, RowsOptions options) {
  BOOST_OUTCOME_TRY(rows.tensor, find_tensor(model.model, name));
  rows.to = type ? model.context->kernels().types().find(type) : &rows.tensor->source_type();
  if (type && (!rows.to || !(rows.to->is_f32() || rows.to == &rows.tensor->source_type())))
    return usage_error(fmt::format("rows of {} cannot be read as {}", quoted_name(name), quoted_name(type)),
                       fmt::format("the type is F32 or {}", rows.tensor->source_type().name));
  return model.context->read_rows(rows, options);
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_model_open(const ggufmill_context* context, const char* path, const char* options,
                                    ggufmill_model** model, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}, {"model", model}}));
    BOOST_OUTCOME_TRY(const OutType out_type, read_out_type(options));
    BOOST_OUTCOME_TRY(Model opened, context->context->inspect(path, out_type));
    *model = new ggufmill_model{context->context, path, out_type, std::move(opened)};
    return ok();
  });
}

void ggufmill_model_free(ggufmill_model* model) { delete model; }

ggufmill_status ggufmill_model_warnings(const ggufmill_model* model, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"json", json}}));
    *json = copy_of(to_json_text(json_texts(model->model.warnings)));
    return ok();
  });
}

size_t ggufmill_model_file_count(const ggufmill_model* model) { return model ? model->model.files.size() : 0; }

ggufmill_status ggufmill_model_file(const ggufmill_model* model, size_t index, ggufmill_file* file,
                                    ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"file", file}}));
    BOOST_OUTCOME_TRY(check_number("file", index, model->model.files.size()));
    const SourceFile& from = *model->model.files[index];
    const ggufmill_file known{0, from.path.c_str(), from.bytes, from.modified};
    return store("ggufmill_file", sizeof known, known, *file);
  });
}

size_t ggufmill_model_metadata_count(const ggufmill_model* model) {
  return model ? model->model.metadata.entries().size() : 0;
}

ggufmill_status ggufmill_model_metadata(const ggufmill_model* model, size_t index, ggufmill_metadata* metadata,
                                        ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"metadata", metadata}}));
    BOOST_OUTCOME_TRY(check_number("metadata entry", index, model->model.metadata.entries().size()));
    const MetadataEntry& from = model->model.metadata.entries()[index];
    const ggufmill_metadata known{0, from.key.c_str(), static_cast<std::uint32_t>(from.value.type),
                                  from.value.bytes.size(), from.value.bytes.data()};
    return store("ggufmill_metadata", sizeof known, known, *metadata);
  });
}

size_t ggufmill_model_tensor_count(const ggufmill_model* model) { return model ? model->model.tensors.size() : 0; }

ggufmill_status ggufmill_model_tensor(const ggufmill_model* model, size_t index, ggufmill_tensor* tensor,
                                      ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"tensor", tensor}}));
    BOOST_OUTCOME_TRY(check_number("tensor", index, model->model.tensors.size()));
    return describe(model->model, model->model.tensors[index], *tensor);
  });
}

ggufmill_status ggufmill_model_find(const ggufmill_model* model, const char* name, ggufmill_tensor* tensor,
                                    ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"name", name}, {"tensor", tensor}}));
    BOOST_OUTCOME_TRY(const Tensor* const found, find_tensor(model->model, name));
    return describe(model->model, *found, *tensor);
  });
}

ggufmill_status ggufmill_model_read_rows(const ggufmill_model* model, const char* tensor, uint64_t first, uint64_t rows,
                                         const char* type, void* into, uint64_t bytes, unsigned threads,
                                         ggufmill_control* control, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"tensor", tensor}, {"into", into}}));
    return read(*model, tensor, type, {.first = first, .rows = rows, .into = {static_cast<std::byte*>(into), bytes}},
                {threads, stop_of(control)});
  });
}
