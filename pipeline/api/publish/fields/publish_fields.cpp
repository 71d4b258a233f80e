// The fields of the sections that make steps of a job.

#include "pipeline/config/job.h"

namespace ggufmill {
namespace {

Form<Hook> hook_form() {
  return map_of<Hook>({field("command", &Hook::command, list_of(text()).at_least(1),
                             "The program and its arguments. No shell interprets them.")
                           .required()
                           .example("[./upload.sh, --quiet]"),
                       field("secrets", &Hook::secrets, enumeration<Secrets>(kSecretsWords),
                             "Tokens and keys in the environment of ggufmill, such as HF_TOKEN and "
                             "AWS_SECRET_ACCESS_KEY: remove them from that of the program, or keep them for a program "
                             "that needs them.")
                           .example("keep")})
      .at(&Hook::origin);
}

Form<QualityOptions> quality_form() {
  using Options = QualityOptions;
  using Run = PerplexityOptions;
  Fields<Run> text_of_run{
      field("program", &Run::program, path(), "The program llama-perplexity of llama.cpp.")
          .example("llama.cpp/build/bin/llama-perplexity"),
      field("text", &Run::text, path(), "Text that the models predict.").required().example("wiki.test.raw"),
      field("chunks", &Run::chunks, "Number of chunks of the text. Defaults to all.")
          .at_least(1)
          .shown_default("")
          .example("100"),
      field("context", &Run::context, "Tokens per chunk.").at_least(Run::kMinContext).example("512"),
  };
  Fields<Options> compared{
      field("against", &Options::base, path(),
            "Path of the output that the others are compared with. Defaults to the first output.")
          .example("out/model-BF16.gguf"),
      field("outputs", &Options::outputs,
            list_of(regex().doc("Pattern to find anywhere in the file name (Perl syntax).")).at_least(1),
            "Outputs to compare, by their file names. Defaults to all of the text model.")
          .example("[Q4_K, IQ2]"),
  };
  Fields<Run> arguments{
      field("options", &Run::options, list_of(text()), "Further arguments of the program.").example("['-ngl', '99']")};
  Fields<Options> results{
      field("json", &Options::json, path(), "Path of the results as data.").example("out/quality.json")};
  return map_of<Options>(fields_within(&Options::perplexity, std::move(text_of_run)) + std::move(compared) +
                         fields_within(&Options::perplexity, std::move(arguments)) + std::move(results))
      .at(&Options::origin);
}

Form<CardOptions> card_form() {
  using Options = CardOptions;
  return map_of<Options>(
             {
                 field("path", &Options::path, path(), "Path of the card.").example("out/README.md"),
                 field("template", &Options::card_template, path(),
                       "Mustache template of the card. Defaults to the built-in one, configs/cards/default.md of the "
                       "sources.")
                     .example("card.md"),
                 field("base_model", &Options::base_model, text(),
                       "Name of the source on the hub. Defaults to what the source's own card says.")
                     .example("ORG/NAME"),
                 field("repository", &Options::repository, text(),
                       "Name on the hub under which the outputs are published, for the commands that the card shows. "
                       "Defaults to that of `upload`.")
                     .example("ORG/NAME-GGUF"),
             })
      .at(&Options::origin);
}

Form<AttestationOptions> attestation_form() {
  using Options = AttestationOptions;
  return map_of<Options>(
             {
                 field("path", &Options::path, path(), "Path of the attestation.")
                     .example("out/attestation.intoto.jsonl"),
                 field("key", &Options::key, path(),
                       "Private key in PEM (Ed25519, or ECDSA on P-256 or P-384) that signs it. Defaults to "
                       "none: the statement is written without a signature, for a tool of yours to sign.")
                     .example("signing.pem"),
             })
      .at(&Options::origin);
}

Form<PresetOptions> presets_form() {
  using Options = PresetOptions;
  return map_of<Options>(
             {
                 field("ollama", &Options::ollama, path(),
                       "Path of a Modelfile for Ollama: one output, its projector, sampling parameters, and a template "
                       "of Ollama if one is known that renders the text of the model's chat template.")
                     .example("out/Modelfile"),
                 field("llama_server", &Options::llama_server, path(),
                       "Path of the presets of all outputs with text models, for llama-server --models-preset.")
                     .example("out/models.ini"),
                 field("lm_studio", &Options::lm_studio, path(), "Path of a preset for LM Studio: sampling parameters.")
                     .example("out/model.preset.json"),
                 field("model", &Options::model, path(),
                       "Path of the output that the Modelfile is for. Defaults to the largest of those with at most 5 "
                       "bits per weight, or else the smallest.")
                     .example("out/model-Q4_K_M.gguf"),
                 field(
                     "context", &Options::context, integer<std::uint64_t>().at_least(1),
                     "Number of tokens of the context. Defaults to 8192 for Ollama and LM Studio, or that of the model "
                     "if it is smaller; llama-server chooses as many as fit.")
                     .example("32768"),
             })
      .at(&Options::origin);
}

Form<UploadOptions> upload_form() {
  using Options = UploadOptions;
  return map_of<Options>(
             {
                 field("to", &Options::to, text(), "Repository of the hub, with a branch other than main after an @.")
                     .required()
                     .example("hf://ORG/NAME-GGUF"),
                 field("files", &Options::files,
                       list_of(regex().doc("Pattern to find anywhere in the file name (Perl syntax).")).at_least(1),
                       "Files to upload, by their names. Defaults to all outputs, importance matrices, the card, the "
                       "presets, and the attestation.")
                     .example("['\\.gguf$']"),
                 field("message", &Options::message, "Message of the commit.").example("Add quantizations"),
                 field("create", &Options::create, "Create the repository if it does not exist.").example("true"),
                 field("private", &Options::is_private,
                       "Whether a repository that is created is private. Defaults to what the organization has set, "
                       "usually public.")
                     .example("true"),
                 field("space", &Options::space,
                       either<std::uint64_t>(word<std::uint64_t>({{"largest", std::uint64_t{0}}})
                                                 .doc("That of the largest output: one output at a time."),
                                             bytes().doc("Number of bytes.").at_least(1)),
                       "Disk space for outputs. They are written, measured, and sent in groups of at most this size, "
                       "each with one read of the source, and removed when the hub has their content; the commit "
                       "follows at the end. Defaults to one group that stays.")
                     .example("200GiB"),
             })
      .at(&Options::origin);
}

}  // namespace

Fields<PublishSections> publish_fields() {
  using Sections = PublishSections;
  return {
      field("quality", &Sections::quality, quality_form(),
            "Measure with llama-perplexity how much the predictions of the outputs differ from those of one of them: "
            "perplexity, KL divergence, and how often the most likely token is the same.")
          .example("{text: wiki.test.raw, chunks: 100}"),
      field("card", &Sections::card, card_form(),
            "Write a description of all outputs: files, sizes, checksums, quality, and how they were made.")
          .example("{path: out/README.md}"),
      field("presets", &Sections::presets, presets_form(),
            "Write files with which Ollama, llama-server and LM Studio run the outputs. `upload` adds them to the "
            "repository.")
          .example("{ollama: out/Modelfile}"),
      field("attestation", &Sections::attestation, attestation_form(),
            "Write what the outputs were made from, for `ggufmill verify --attestation` and `ggufmill reproduce`: the "
            "checksums of the sources and of the outputs, this pipeline file, the version and the kernel modules, as a "
            "statement of in-toto with the predicate of SLSA. `upload` adds it to the repository.")
          .example("{path: out/attestation.intoto.jsonl, key: signing.pem}"),
      field("upload", &Sections::upload, upload_form(),
            "Upload the files to a repository of the Hugging Face hub in one commit, with the token that HF_TOKEN or "
            "`hf auth login` gives. Files that are there already are not sent again.")
          .example("{to: 'hf://ORG/NAME-GGUF'}"),
      field("after", &Sections::after, hook_form(),
            "Program to run when everything else is complete. Its environment has GGUFMILL_OUTPUTS, the paths of all "
            "outputs, one per line. If it fails, the job fails, and the next run starts it again.")
          .example("{command: [./announce.sh]}")};
}

Fields<PublishOutputSections> publish_output_fields() {
  return {
      field("after", &PublishOutputSections::after, hook_form(),
            "Program to run when the output is complete. Its environment has GGUFMILL_OUTPUT, the path of the first "
            "file, GGUFMILL_BYTES, the size of all files, GGUFMILL_SHA256, the checksum of the first file, and "
            "GGUFMILL_MANIFEST, the path of the manifest, which lists all files. If it fails, the job fails, and the "
            "next run starts it again.")
          .example("{command: [./upload.sh]}")};
}

}  // namespace ggufmill
