#pragma once
// A cluster job, or a matrix of them, as manifests of Kubernetes.

#include <string>

#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

struct KubernetesOptions {
  std::string image = "ggufmill:latest";  // that has the program
  std::string claim;                      // a PersistentVolumeClaim that all pods may write: where job and models are
  std::string mount;                      // the path that it is mounted at, as here; empty: the job's file system's
};

// Two Jobs in one List, as JSON, which kubectl reads as it reads YAML: the parts as an Indexed Job, the seal as one
// that waits for them. A part that ends with 75 is tried again, one that ends with another code fails alone. Made after
// the published schema of batch/v1 (Kubernetes 1.33); not tried against a server.
// Exit code 2 for a mount path that hides files of the image, or that the job's folders are not below.
Result<std::string> kubernetes_manifest(const ClusterArray& array, const KubernetesOptions& options);

// The path that the file system of a folder is mounted at; "/" where the folder does not exist.
std::string mount_point_of(const std::string& path);

}  // namespace ggufmill
