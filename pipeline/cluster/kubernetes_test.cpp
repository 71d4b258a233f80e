// Checks manifests of Kubernetes against the fields of the published API (batch/v1 and core/v1 of Kubernetes 1.33).

#include "pipeline/cluster/kubernetes.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>

#include "pipeline/cluster/test_job.h"
#include "pipeline/io/platform/files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace json = boost::json;

namespace {

// The fields that an object of the API may have, by its kind. Fields that are objects or lists of objects name their
// kind.
using Fields = std::map<std::string, std::string>;
const std::map<std::string, Fields>& api() {
  static const std::map<std::string, Fields> kinds{
      {"List", {{"apiVersion", ""}, {"kind", ""}, {"items", "Job"}}},
      {"Job", {{"apiVersion", ""}, {"kind", ""}, {"metadata", "ObjectMeta"}, {"spec", "JobSpec"}}},
      {"ObjectMeta", {{"name", ""}, {"namespace", ""}, {"labels", "*"}, {"annotations", "*"}}},
      {"JobSpec",
       {{"activeDeadlineSeconds", ""},
        {"backoffLimit", ""},
        {"backoffLimitPerIndex", ""},
        {"completionMode", ""},
        {"completions", ""},
        {"manualSelector", ""},
        {"maxFailedIndexes", ""},
        {"parallelism", ""},
        {"podFailurePolicy", "PodFailurePolicy"},
        {"podReplacementPolicy", ""},
        {"suspend", ""},
        {"template", "PodTemplateSpec"},
        {"ttlSecondsAfterFinished", ""}}},
      {"PodFailurePolicy", {{"rules", "PodFailurePolicyRule"}}},
      {"PodFailurePolicyRule",
       {{"action", ""}, {"onExitCodes", "OnExitCodes"}, {"onPodConditions", "OnPodConditions"}}},
      {"OnExitCodes", {{"containerName", ""}, {"operator", ""}, {"values", ""}}},
      {"OnPodConditions", {{"type", ""}, {"status", ""}}},
      {"PodTemplateSpec", {{"metadata", "ObjectMeta"}, {"spec", "PodSpec"}}},
      {"PodSpec",
       {{"restartPolicy", ""},
        {"terminationGracePeriodSeconds", ""},
        {"containers", "Container"},
        {"volumes", "Volume"},
        {"securityContext", "PodSecurityContext"},
        {"nodeSelector", "*"}}},
      {"PodSecurityContext", {{"runAsUser", ""}, {"runAsGroup", ""}, {"fsGroup", ""}}},
      {"Container",
       {{"name", ""},
        {"image", ""},
        {"command", ""},
        {"args", ""},
        {"workingDir", ""},
        {"env", "EnvVar"},
        {"resources", "Resources"},
        {"volumeMounts", "VolumeMount"}}},
      {"EnvVar", {{"name", ""}, {"value", ""}}},
      {"Resources", {{"limits", "*"}, {"requests", "*"}}},
      {"VolumeMount", {{"name", ""}, {"mountPath", ""}, {"subPath", ""}, {"readOnly", ""}}},
      {"Volume", {{"name", ""}, {"persistentVolumeClaim", "Claim"}}},
      {"Claim", {{"claimName", ""}, {"readOnly", ""}}}};
  return kinds;
}

void check_object(const json::value& value, const std::string& kind) {
  if (value.is_array()) {
    for (const json::value& item : value.as_array()) check_object(item, kind);
    return;
  }
  for (const auto& member : value.as_object()) {
    const std::string name(member.key());
    CAPTURE(kind, name);
    const auto found = api().at(kind).find(name);
    REQUIRE(found != api().at(kind).end());
    if (found->second.empty())
      CHECK_FALSE(member.value().is_object());
    else if (found->second != "*")
      check_object(member.value(), found->second);
  }
}

}  // namespace

TEST_CASE("the parts of a matrix are one Job of Kubernetes") {
  ClusterArray array = array_of(job_in("/shared/jobs/0-a"));
  array.folder = "/shared/jobs";
  array.is_matrix = true;
  array.jobs.push_back(job_in("/shared/jobs/1-b"));
  array.jobs.back().first_part = array.jobs.front().parts();
  KubernetesOptions options;
  options.claim = "models";
  options.mount = "/shared";
  const json::value list = json::parse(kubernetes_manifest(array, options).value());
  check_object(list, "List");
  CHECK(list.at("items").at(0).at("spec").at("completions") == 8);
}

TEST_CASE("manifests of Kubernetes have fields that it knows") {
  ClusterArray array = array_of(job_in("/shared/jobs/llama.job"));
  ClusterJob& job = array.jobs.front();
  job.options.cpus = 8;
  job.options.memory = std::uint64_t{4} << 30;
  KubernetesOptions options;
  options.claim = "models";
  options.mount = "/shared/";
  const std::string manifest = kubernetes_manifest(array, options).value();
  const json::value list = json::parse(manifest);
  check_object(list, "List");
  CHECK(manifest.find("SLURM") == std::string::npos);
  const json::array& items = list.at("items").as_array();
  REQUIRE(items.size() == 2);
  const json::value& parts = items[0].at("spec");
  CHECK(parts.at("completionMode") == "Indexed");
  CHECK(parts.at("completions") == 4);
  CHECK(parts.at("parallelism") == 4);
  const json::value& pod = parts.at("template").at("spec");
  CHECK(pod.at("restartPolicy") == "Never");  // required by podFailurePolicy
  CHECK(pod.at("containers").at(0).at("volumeMounts").at(0).at("mountPath") == "/shared");
  CHECK(pod.at("containers").at(0).at("command") == json::array{"ggufmill"});  // found through the PATH of the image
  CHECK(pod.at("containers").at(0).at("resources").at("limits") == json::object{{"cpu", "8"}, {"memory", "4096Mi"}});
  CHECK(pod.at("containers").at(0).at("args").at(5) == "JOB_COMPLETION_INDEX");
  const auto rules = [](const json::value& item) {
    return item.at("spec").at("podFailurePolicy").at("rules").as_array();
  };
  CHECK(rules(items[0])[1].at("action") == "FailIndex");  // only valid with backoffLimitPerIndex
  CHECK(rules(items[1])[1].at("action") == "FailJob");
  for (const json::value& item : items) {
    const std::string name(item.at("metadata").at("name").as_string());
    CAPTURE(name);
    CHECK(name.size() <= 63);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
  }
}

TEST_CASE("a volume is mounted at a path of its own, with all folders of the job below it") {
  const ClusterArray array = array_of(job_in("/shared/jobs/llama.job"));
  KubernetesOptions options;
  options.claim = "models";
  const auto refusal = [&](const char* mount) {
    options.mount = mount;
    const auto made = kubernetes_manifest(array, options);
    REQUIRE(!made);
    CHECK(made.error().code == ExitCode::kUsage);
    return made.error().what;
  };
  for (const char* mount : {"/", "/usr", "/usr/local/", "/etc", "/tmp", "/proc/x"}) {
    CAPTURE(mount);
    CHECK(refusal(mount) == fmt::format("a volume mounted at '{}' would hide files of the image", mount));
  }
  CHECK(refusal("shared") == "--mount 'shared' is not an absolute path");
  CHECK(refusal("/shared/jobs") == "the pods cannot see '/shared/work here': the volume is mounted at '/shared/jobs'");
  CHECK(refusal("") == "the job folder '/shared/jobs/llama.job' is not on a volume mounted at a path of its own");
  CHECK(mount_point_of("/proc/self/task") == "/proc");
  CHECK(mount_point_of("/no/such/folder") == "/");
}

TEST_CASE("the pods of Kubernetes run as the user whose job it is") {
  const TempDir folder;
  ClusterJob job = job_in(folder.path());
  job.working_folder = folder.path();
  KubernetesOptions options;
  options.claim = "models";
  options.mount = folder.path();
  const auto manifest = kubernetes_manifest(array_of(job), options);
  if (!manifest) FAIL(render(manifest.error()));
  const json::value list = json::parse(manifest.value());
  const json::value& pod = list.at("items").at(0).at("spec").at("template").at("spec");
  CHECK(pod.at("securityContext").at("runAsUser") == own_user());
}
