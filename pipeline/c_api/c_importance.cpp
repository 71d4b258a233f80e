// Importance files of the C interface that are open for reading.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/c_api/c_support.h"
#include "pipeline/report/json_text.h"
#include "stages/importance/importance_file.h"

struct ggufmill_importance {
  std::shared_ptr<const ggufmill::Context> context;
  ggufmill::ImportanceFile file;
};

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_importance_open(const ggufmill_context* context, const char* path,
                                         ggufmill_importance** importance, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}, {"importance", importance}}));
    BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(path, gguf_opener(context->context->kernels().types())));
    *importance = new ggufmill_importance{context->context, std::move(file)};
    return ok();
  });
}

void ggufmill_importance_free(ggufmill_importance* importance) { delete importance; }

ggufmill_status ggufmill_importance_list(const ggufmill_importance* importance, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"importance", importance}, {"json", json}}));
    const ImportanceFile& file = importance->file;
    boost::json::array entries;
    for (const ImportanceEntry& entry : file.entries) {
      const std::uint64_t parts = std::max<std::uint64_t>(1, entry.counts.count);
      entries.push_back({{"name", entry.name}, {"columns", entry.size() / parts}, {"parts", parts}});
    }
    *json = copy_of(to_json_text(boost::json::object{{"files", json_texts(file.files)},
                                                     {"datasets", json_texts(file.datasets)},
                                                     {"chunks", file.chunks},
                                                     {"entries", std::move(entries)}}));
    return ok();
  });
}

ggufmill_status ggufmill_importance_weights(const ggufmill_importance* importance, size_t index, float* into,
                                            uint64_t count, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"importance", importance}, {"into", into}}));
    const std::vector<ImportanceEntry>& entries = importance->file.entries;
    if (index >= entries.size())
      return usage_error(fmt::format("entry {} does not exist", index),
                         fmt::format("the file has {}, numbered from 0", entries.size()));
    if (count != entries[index].size())
      return usage_error(fmt::format("entry {} has {} weights, not {}", index, entries[index].size(), count));
    return entries[index].weights(0, {into, count});
  });
}
