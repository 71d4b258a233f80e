#include "pipeline/cli/command_line.h"

#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "pipeline/cli/messages.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

std::string help_text(const CommandSpec& spec) {
  std::ostringstream options;
  options << spec.options;
  return fmt::format("usage: {}\n\n{}\n\n{}\nexample:\n{}\n", spec.usage, spec.description, options.str(),
                     spec.examples);
}

Parsed usage_failure(const CommandSpec& spec, const std::string& what) {
  return {fail(usage_error(what, fmt::format("usage: {}; `--help` explains", spec.usage))), {}};
}

po::variables_map parse(const CommandSpec& spec, const Arguments& arguments) {
  po::positional_options_description positional;
  if (!spec.positional.empty()) positional.add(spec.positional.c_str(), spec.most_positional);
  po::variables_map values;
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(arguments).options(spec.options).positional(positional).style(style).run(), values);
  po::notify(values);
  return values;
}

}  // namespace

Parsed parse_command(CommandSpec spec, const Arguments& arguments) {
  spec.options.add_options()("log", po::value<std::string>()->default_value("text"),
                             "messages on stderr: text, or json for one object a line")("help,h", "this text");
  try {
    Parsed parsed{{}, parse(spec, arguments)};
    if (parsed.values.count("help")) {
      std::cout << help_text(spec);
      return {0, {}};
    }
    const auto log = parsed.values["log"].as<std::string>();
    if (log != "text" && log != "json")
      return usage_failure(spec, fmt::format("--log is 'text' or 'json', not '{}'", log));
    set_log_format(log == "json" ? LogFormat::kJson : LogFormat::kText);
    if (!spec.positional.empty() && !parsed.values.count(spec.positional))
      return usage_failure(spec, fmt::format("no {} given", spec.positional));
    return parsed;
  } catch (const po::error& error) {
    return usage_failure(spec, error.what());
  }
}

}  // namespace ggufmill
