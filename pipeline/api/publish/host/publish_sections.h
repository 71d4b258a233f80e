#pragma once
// The sections that make steps of a job: what a pipeline file has for the job, and for each output.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/perplexity.h"
#include "pipeline/core/secrets.h"

namespace ggufmill {

// A program that runs when an output, or all of a job, is complete.
struct Hook {
  std::vector<std::string> command;  // the program and its arguments; empty: none
  Secrets secrets = Secrets::kRemove;
  Origin origin{};
};

// Comparison of a job's outputs with one of them, by a program that compares the predictions of two models.
struct QualityOptions {
  PerplexityOptions perplexity;
  std::string base;              // path of the output to compare with; empty: the first output
  std::vector<Pattern> outputs;  // of the file names of those compared; empty: all outputs of the text model
  std::string json;              // path of the results as data; empty: none
  Origin origin{};
};

// The description of the outputs for their readers, in Markdown.
struct CardOptions {
  std::string path = "README.md";
  std::string card_template;  // path of a Mustache template; empty: the built-in one
  std::string base_model;     // name on the hub; empty: as the source's own card says
  std::string repository;     // name on the hub under which the outputs are published; empty: unknown
  Origin origin{};
};

// The statement of what the outputs were made from.
struct AttestationOptions {
  std::string path = "attestation.intoto.jsonl";
  std::string key;  // path of the private key that signs it; empty: it is not signed
  Origin origin{};
};

// Files that tell programs how to run the outputs. Paths that are empty are not written.
struct PresetOptions {
  std::string ollama, llama_server, lm_studio;  // paths
  std::string model;                            // path of the output that the first and the last are for; empty: chosen
  std::optional<std::uint64_t> context{};       // tokens
  Origin origin{};
};

// The repository to which the files of a job are uploaded.
struct UploadOptions {
  std::string to;                     // "hf://ORG/NAME" or "hf://ORG/NAME@BRANCH"
  std::vector<Pattern> files;         // of the file names that are uploaded; empty: all
  std::string message = "Add files";  // of the commit
  bool create = false;                // create the repository if it does not exist
  std::optional<bool> is_private{};   // of a repository that is created; none: as the organization has it
  // Bytes of disk for the outputs, which are removed when they are sent; 0: one output at a time; none: they stay.
  std::optional<std::uint64_t> space{};
  Origin origin{};
};

struct PublishSections {
  std::optional<QualityOptions> quality{};
  std::optional<CardOptions> card{};
  std::optional<PresetOptions> presets{};
  std::optional<AttestationOptions> attestation{};
  std::optional<UploadOptions> upload{};
  Hook after{};  // run when everything else is complete
};

struct PublishOutputSections {
  Hook after{};  // run when the output is complete
};

}  // namespace ggufmill
