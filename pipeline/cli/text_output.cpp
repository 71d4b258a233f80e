#include "pipeline/cli/text_output.h"

#include "pipeline/io/io.h"
#include "pipeline/io/output_target.h"

namespace ggufmill {
namespace {

AtomicFile::Options options_for(const std::vector<SourceFile>& inputs, bool overwrite) {
  AtomicFile::Options options{overwrite, {}};
  for (const SourceFile& input : inputs) options.inputs.push_back(input.path);
  return options;
}

}  // namespace

Status write_text(const std::string& path, const std::string& text, const std::vector<SourceFile>& inputs,
                  bool overwrite) {
  BOOST_OUTCOME_TRY(const auto file, AtomicFile::create(path, text.size(), options_for(inputs, overwrite)));
  return file->seal(std::as_bytes(std::span(text)), 0);
}

Status check_text(const std::string& path, const std::vector<SourceFile>& inputs, bool overwrite) {
  BOOST_OUTCOME_TRY(split_target(path));
  BOOST_OUTCOME_TRY(check_target(path, options_for(inputs, overwrite)));
  return ok();
}

}  // namespace ggufmill
