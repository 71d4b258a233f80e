// `render`: gives a cluster job in the format of another engine.

#include "pipeline/cluster/kubernetes.h"
#include "pipeline/cluster/operations/cluster_operations.h"
#include "pipeline/core/json.h"
#include "pipeline/core/option_reference.h"

namespace ggufmill {
namespace {

enum class RenderedEngine { kKubernetes };
constexpr std::string_view kRenderedEngines[] = {"kubernetes"};

struct RenderRequest : KubernetesOptions {
  std::string folder{};
  RenderedEngine engine = RenderedEngine::kKubernetes;
};

struct RenderedJob {
  std::string manifests{};
};

Result<Answer<RenderedJob>> run_render(const Context&, const RenderRequest& request, const Call&) {
  if (request.claim.empty())
    return usage_error("no volume given", "give " + option_reference("claim", "NAME") +
                                              " with the PersistentVolumeClaim of the shared volume");
  BOOST_OUTCOME_TRY(const ClusterArray array, load_array(request.folder));
  BOOST_OUTCOME_TRY(std::string manifests, kubernetes_manifest(array, request));
  return Answer<RenderedJob>{{std::move(manifests)}};
}

}  // namespace

OperationSpec render_operation() {
  using Options = std::vector<Option<RenderRequest>>;
  namespace json = boost::json;
  return operation(OperationOf<RenderRequest, RenderedJob>{
      .name = "render",
      .group = OperationGroup::kCluster,
      .summary = "Print a cluster job as Kubernetes manifests",
      .description =
          "Print a cluster job that `ggufmill submit --engine none` created in the format of another engine. For "
          "Kubernetes: an Indexed Job for the parts and a Job for the seal, as JSON. The folder of the job, the "
          "models, and the outputs must be on one volume that all pods can write to at the same time, mounted at the "
          "same path as here. The path must not be one that the image uses, such as /usr or /tmp. Pods run the "
          "`ggufmill` of the image. Not tested against a server.",
      .examples = "  ggufmill submit llama.yaml --engine none\n"
                  "  ggufmill render llama.job --engine kubernetes --claim models --mount /shared --image "
                  "registry/ggufmill:0.1 | kubectl apply -f -",
      .options = Options{option("folder", &RenderRequest::folder, path(), "the folder of the job").word("FOLDER"),
                         option("engine", &RenderRequest::engine, enumeration<RenderedEngine>(kRenderedEngines),
                                "engine to print the job for: kubernetes"),
                         option("claim", &KubernetesOptions::claim, text(),
                                "PersistentVolumeClaim of the shared volume; required"),
                         option("mount", &KubernetesOptions::mount, text(),
                                "path where it is mounted, here and in the pods; default: the mount point of the "
                                "job's file system"),
                         option("image", &KubernetesOptions::image, text(), "container image with the program")},
      .result = {{result<RenderedJob>(
          "manifests",
          [](const RenderedJob& it) -> std::optional<json::value> {
            auto parsed = parse_json("manifests", it.manifests);
            return parsed ? std::optional(std::move(parsed).value()) : std::nullopt;
          },
          "an object of the kind List with the manifests")}},
      .context = ContextUse::kNone,
      .run = run_render,
      .print = [](const RenderedJob& it, TextOutput& to) { to.out = it.manifests + "\n"; }});
}

}  // namespace ggufmill
