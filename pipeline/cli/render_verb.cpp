// `ggufmill render`: prints a cluster job in the format of another engine.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/cli/cluster_jobs.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/kubernetes.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec render_command() {
  CommandSpec spec;
  spec.usage = "ggufmill render FOLDER --engine kubernetes --claim NAME [options]";
  spec.description =
      "Print a cluster job that `ggufmill submit --engine none` created in the format of another engine. For "
      "Kubernetes: an Indexed Job for the parts and a Job for the seal, as JSON. The folder of the job, the models, "
      "and the outputs must be on one volume that all pods can write to at the same time, mounted at the same path as "
      "here. The path must not be one that the image uses, such as /usr or /tmp. Pods run the `ggufmill` of the image. "
      "Not tested against a server.";
  spec.examples =
      "  ggufmill submit llama.yaml --engine none\n"
      "  ggufmill render llama.job --engine kubernetes --claim models --mount /shared --image registry/ggufmill:0.1 | "
      "kubectl apply -f -";
  spec.positional = "folder";
  auto add = spec.options.add_options();
  add("engine", po::value<std::string>()->default_value("kubernetes"), "engine to print the job for: kubernetes");
  add("claim", po::value<std::string>(), "PersistentVolumeClaim of the shared volume");
  add("mount", po::value<std::string>(),
      "path where it is mounted, here and in the pods; default: the mount point of the job's file system");
  add("image", po::value<std::string>()->default_value("ggufmill:latest"), "container image with the program");
  return spec;
}

Status run_render(const po::variables_map& values) {
  const auto engine = values["engine"].as<std::string>();
  if (engine != "kubernetes")
    return usage_error(fmt::format("unknown engine '{}'", engine), "--engine must be kubernetes");
  KubernetesOptions options;
  options.image = values["image"].as<std::string>();
  options.mount = value_or<std::string>(values, "mount", {});
  const std::optional<std::string> claim = text_of(values, "claim");
  if (!claim)
    return usage_error("no volume given", "give --claim NAME with the PersistentVolumeClaim of the shared volume");
  options.claim = *claim;
  BOOST_OUTCOME_TRY(const ClusterArray array, load_array(values["folder"].as<std::string>()));
  BOOST_OUTCOME_TRY(const std::string manifest, kubernetes_manifest(array, options));
  std::puts(manifest.c_str());
  return ok();
}

int render_verb(const Parsed& parsed) {
  const Status status = run_render(parsed.values);
  return status ? 0 : fail(status.error());
}

}  // namespace

const Verb kRenderVerb{"render", OperationGroup::kCluster, "Print a cluster job as Kubernetes manifests",
                       render_command, render_verb};

}  // namespace ggufmill
