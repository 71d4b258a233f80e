#include "pipeline/cluster/kubernetes.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cctype>

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr int kTries = 20;  // of one part, each of which goes on from the last

// A name of Kubernetes: letters, digits and dashes, at most 63 in all, of which the ending takes up to 20.
std::string object_name(const ClusterJob& job, const char* what) {
  std::string name;
  for (const char c : job.name) {
    const auto letter = static_cast<unsigned char>(c);
    const char small = std::isalnum(letter) && letter < 128 ? static_cast<char>(std::tolower(letter)) : '-';
    if (small != '-' || (!name.empty() && name.back() != '-')) name += small;
  }
  name = name.substr(0, 30);
  while (name.ends_with('-')) name.pop_back();
  return fmt::format("ggufmill-{}{}{}-{}", name, name.empty() ? "" : "-", job.id, what);
}

json::object container(const ClusterJob& job, const KubernetesOptions& options, json::array arguments,
                       const std::string& mount) {
  json::object resources;
  if (job.options.cpus != 0) resources["cpu"] = std::to_string(job.options.cpus);
  if (job.options.memory != 0) resources["memory"] = fmt::format("{}Mi", job.options.memory >> 20);
  json::object one{{"name", "ggufmill"},
                   {"image", options.image},
                   {"command", json::array{"ggufmill"}},
                   {"args", std::move(arguments)},
                   {"workingDir", job.working_folder},
                   {"volumeMounts", json::array{json::object{{"name", "shared"}, {"mountPath", mount}}}}};
  if (!resources.empty()) one["resources"] = json::object{{"requests", resources}, {"limits", resources}};
  // What Slurm says by itself.
  json::array environment;
  if (job.options.cpus != 0)
    environment.push_back(json::object{{"name", "SLURM_CPUS_PER_TASK"}, {"value", std::to_string(job.options.cpus)}});
  if (job.options.memory != 0)
    environment.push_back(
        json::object{{"name", "SLURM_MEM_PER_NODE"}, {"value", std::to_string(job.options.memory >> 20)}});
  if (!environment.empty()) one["env"] = std::move(environment);
  return one;
}

json::object job_object(const ClusterJob& job, const KubernetesOptions& options, const char* what, json::object spec,
                        json::array arguments) {
  const std::string mount = options.mount.empty() ? job.folder.substr(0, job.folder.find('/', 1)) : options.mount;
  spec["template"] = json::object{
      {"spec", json::object{{"restartPolicy", "Never"},
                            {"terminationGracePeriodSeconds", 60},
                            {"containers", json::array{container(job, options, std::move(arguments), mount)}},
                            {"volumes", json::array{json::object{
                                            {"name", "shared"},
                                            {"persistentVolumeClaim", json::object{{"claimName", options.claim}}}}}}}}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", json::object{{"name", object_name(job, what)},
                                    {"labels", json::object{{"app.kubernetes.io/name", "ggufmill"}}}}},
          {"spec", std::move(spec)}};
}

// One rule after the other: a pod that its node took down, one that may be tried again, one that failed for good.
json::object failure_policy(const char* for_good) {
  const json::object disrupted{
      {"action", "Ignore"},
      {"onPodConditions", json::array{json::object{{"type", "DisruptionTarget"}, {"status", "True"}}}}};
  const json::object permanent{
      {"action", for_good},
      {"onExitCodes",
       json::object{{"containerName", "ggufmill"}, {"operator", "NotIn"}, {"values", json::array{0, 75, 137, 143}}}}};
  return {{"rules", json::array{disrupted, permanent}}};
}

}  // namespace

std::string kubernetes_manifest(const ClusterArray& array, const KubernetesOptions& options) {
  const ClusterJob& job = array.jobs.front();
  const std::string plan = array.plan_file();
  json::object parts{
      {"completionMode", "Indexed"},
      {"completions", array.parts()},
      {"parallelism",
       job.options.max_parallel ? std::min<std::size_t>(job.options.max_parallel, array.parts()) : array.parts()},
      {"backoffLimitPerIndex", kTries},
      {"podFailurePolicy", failure_policy("FailIndex")}};
  json::object seal{{"backoffLimit", kTries}, {"podFailurePolicy", failure_policy("FailJob")}};
  const json::object list{
      {"apiVersion", "v1"},
      {"kind", "List"},
      {"items",
       json::array{job_object(job, options, "parts", std::move(parts),
                              {"part", "--quiet", "--plan", plan, "--part-env", "JOB_COMPLETION_INDEX"}),
                   job_object(job, options, "seal", std::move(seal), {"seal", "--plan", plan, "--wait", "6h"})}}};
  return json::serialize(list);
}

}  // namespace ggufmill
