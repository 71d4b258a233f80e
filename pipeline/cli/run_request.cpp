#include "pipeline/cli/run_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/api/table.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/terminal.h"

namespace ggufmill {
namespace {

// Shows progress: of the operation or its runs, and of steps, whose time begins with them.
class Progresses {
 public:
  Progresses(bool quiet, std::string title) : quiet_(quiet), title_(std::move(title)) {}

  void give_to(Call& call) {
    call.progress = [this](std::uint64_t done, std::uint64_t total) { main().show(title_, done, total); };
    call.run_progress = [this](const Plan& plan, const Progress& now) { main().show(plan, now); };
    call.step_progress = [this](const std::string& step, std::uint64_t done, std::uint64_t total) {
      of_step(step).show(step, done, total);
    };
    call.chunk_progress = [this](std::string_view step, const std::string& model, std::uint64_t done,
                                 std::uint64_t total) {
      of_step(fmt::format("{} {}", step, model)).show_chunks(step, model, done, total);
    };
  }

  // Ends the lines on a terminal, so that others can follow them.
  void finish() {
    for (std::optional<ProgressMeter>* const meter : {&main_, &step_})
      if (*meter) (*meter)->finish();
  }

 private:
  ProgressMeter& main() { return main_ ? *main_ : main_.emplace(quiet_); }
  ProgressMeter& of_step(const std::string& step) {
    if (step_ && step == step_name_) return *step_;
    step_name_ = step;
    return step_.emplace(quiet_);
  }

  const bool quiet_;
  const std::string title_;
  std::string step_name_;
  std::optional<ProgressMeter> main_, step_;
};

// Prints results that replace each other: in place on a terminal; elsewhere each that differs from the one before.
class ResultScreen {
 public:
  void show(const TextOutput& text) {
    std::string now = text.table ? render_table(text.table->columns, text.table->rows) : "";
    now += terminal_ || text.interim.empty() ? text.out : text.interim;
    if (now == last_) return;
    if (terminal_ && lines_ != 0) fmt::print("\x1b[{}F\x1b[J", lines_);
    std::fwrite(now.data(), 1, now.size(), stdout);
    lines_ = std::count(now.begin(), now.end(), '\n');
    last_ = std::move(now);
  }

 private:
  const bool terminal_ = is_terminal(StandardStream::kOut);
  std::ptrdiff_t lines_ = 0;
  std::string last_;
};

// Returns the exit code of a failure: that of the signal that ended the operation, unless it says that trying again may
// help.
int after_signal(int code) {
  return code == static_cast<int>(ExitCode::kTransient) ? code : signal_exit_code().value_or(code);
}

// Prints the errors of a failure, and returns the exit code of the first.
int print_failure(const Error& failure, bool is_partial) {
  if (!is_partial) return fail(failure);
  Diagnostics errors;
  errors.add(failure);
  for (const Error& error : errors.errors()) print_error(error);
  return static_cast<int>(failure.code);
}

void print_json(const OperationSpec& operation, const void* value, const TextOutput& text, bool is_last,
                JsonList& list) {
  if (operation.has_json_of_table && (text.table || !operation.result_is_alone))
    return list.add(text.table ? table_json(text.table->columns, text.table->rows) : "[]");
  if (is_last) list.begin_item();
  const TextSink sink = [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); };
  if (operation.result_is_alone)
    write_alone(operation.result, value, sink);
  else
    operation.write(value, sink);
  if (!is_last) sink("\n");
}

}  // namespace

int run_request(const OperationSpec& operation, const Context& context, const OperationRequest& request,
                const Shown& shown, const OptionNames& names, bool has_heading, JsonList* list) {
  const std::string title(operation.progress.value_or("").empty() ? request.name : *operation.progress);
  Progresses progress(shown.quiet, title);
  ResultScreen screen;
  const auto print = [&](const std::shared_ptr<const void>& value, bool is_last) {
    TextOutput text;
    operation.print(value.get(), text);
    if (list)
      print_json(operation, value.get(), text, is_last, *list);
    else
      screen.show(text);
    std::fflush(stdout);
    return text;
  };
  Call call{.ask_stop = catch_signals,
            .warn =
                [&](const std::string& warning) {
                  progress.finish();
                  print_warning(names.in_message(warning));
                },
            .shows_notes = !shown.quiet,
            .is_program = true};
  if (operation.progress) progress.give_to(call);
  if (!shown.quiet)
    call.note = [&](const Message& note) {
      progress.finish();
      print_note(names.in_message(note.text), note.table);
    };
  call.interim = [&](const std::shared_ptr<const void>& value) { print(value, false); };
  const auto answer = operation.run(context, request.value.get(), call);
  progress.finish();
  if (!answer) return after_signal(fail(names.in_error(answer.error())));
  if (has_heading && !list) fmt::print("{}\n", printable(request.name));
  const TextOutput text = print(answer.value().value, true);
  int code = answer.value().exit_code;
  if (const auto& failure = answer.value().failure) {
    code = print_failure(names.in_error(*failure), answer.value().is_partial);
    code = after_signal(code);
    if (!answer.value().is_partial) return code;
  }
  for (const Message& note : text.notes) call.note(note);
  return code;
}

}  // namespace ggufmill
