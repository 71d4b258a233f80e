// quantize MODEL.gguf FOLDER: quantizes the model in C++ with ggufmill.hpp, reads the result, and shows errors,
// progress and exceptions of the progress function.
#include <cmath>
#include <cstdio>
#include <ggufmill.hpp>
#include <stdexcept>
#include <string>

namespace {

std::string pipeline(const std::string& model, const std::string& output) {
  return "version: 1\nsource: {gguf: " + model + "}\noutputs: [{gguf: " + output + ", quantize: Q4_K_M}]\n";
}

// Returns true if an unknown option is refused with its name.
bool refuses_unknown_options(const ggufmill::Job& job) {
  try {
    job.check(R"({"overwritten": true})");
  } catch (const ggufmill::Error& error) {
    return error.code() == GGUFMILL_ERROR_USAGE && error.problems().at(0).what == "unknown option 'overwritten'";
  }
  return false;
}

// Returns true if sizes that do not fit are refused with an Error.
bool refuses_wrong_sizes(const ggufmill::Context& context, const ggufmill::Model& model,
                         const ggufmill_tensor& tensor) {
  const std::function<void()> calls[] = {
      [&] { context.quantize("Q8_0", std::vector<float>(33), 32); },
      [&] { context.quantize("Q8_0", std::vector<float>(32), 0); },
      [&] { context.quantize("Q8_0", std::vector<float>(32), 32, {1}); },
      [&] { context.decode("Q8_0", std::vector<unsigned char>(35), 32); },
      [&] { model.rows(tensor.name, 0, 0); },
      [&] { model.rows(tensor.name, 1, UINT64_MAX); },
  };
  for (const auto& call : calls) try {
      call();
      return false;
    } catch (const ggufmill::Error& error) {
      if (error.code() != GGUFMILL_ERROR_USAGE || error.problems().empty()) return false;
    }
  return true;
}

// Returns true if an exception of the progress function ends the run, or comes too late to end it.
bool passes_exceptions_on(const ggufmill::Job& job) {
  bool was_called = false;
  ggufmill::Control control([&](const ggufmill_progress&) {
    was_called = true;
    throw std::logic_error("enough");
  });
  try {
    job.run(nullptr, &control);
  } catch (const std::logic_error&) {
  }
  return was_called;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  try {
    const std::string output = std::string(argv[2]) + "/cpp.gguf";
    const ggufmill::Context context;
    const ggufmill::Job job = context.parse_job(pipeline(argv[1], output), "job");
    if (!refuses_unknown_options(job)) return 2;
    if (!passes_exceptions_on(job)) return 3;
    std::uint64_t written = 0;
    ggufmill::Control control([&](const ggufmill_progress& now) { written = now.bytes_written; });
    job.run(R"({"overwrite": true})", &control);
    if (written == 0) return 4;

    const ggufmill::Model made = context.open_model(output);
    const ggufmill_tensor tensor = made.tensor(std::size_t{0});
    const auto values = made.rows(tensor.name, 0, 1);
    const auto again = context.decode(tensor.type, made.raw_rows(tensor.name, 0, 1), tensor.columns);
    if (values.size() != tensor.columns || values != again) return 5;
    if (!refuses_wrong_sizes(context, made, tensor)) return 9;
    if (context.call("recipes").find("Q4_K_M") == std::string::npos) return 6;
    return context.call("verify", "{\"path\": \"" + output + "\"}").empty() ? 7 : 0;
  } catch (const ggufmill::Error& error) {
    std::fputs(error.what(), stderr);
    return 8;
  }
}
