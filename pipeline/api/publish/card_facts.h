#pragma once
// Facts about a job and its outputs for a card.

#include <string>

#include "pipeline/api/publish/card/card.h"
#include "pipeline/api/publish/job_outputs.h"
#include "pipeline/core/error.h"
#include "pipeline/core/job.h"

namespace ggufmill {

struct CardTemplate {
  std::string name, text;
};
// Returns the template that the options name, after rendering an example with as many files as the job has outputs.
// Fails with exit code 2 or 4.
Result<CardTemplate> card_template(const CardOptions& options, std::size_t outputs);

// Returns warnings about the card of a job: about the card of the source's folder, and that there is no base model.
// `plan` is that of any output.
std::vector<std::string> card_warnings(const CardOptions& options, const Plan& plan, const Job& job);

// Returns the path of the card in the source's folder, which need not exist. `plan` is that of any output.
std::string base_card_path(const Plan& plan);

// Returns the card of a job whose outputs are all written, with the quality that is known. Reads the card of the
// source's folder, if there is one.
Result<Card> card_of(const CardOptions& options, JobOutputs& outputs);

}  // namespace ggufmill
