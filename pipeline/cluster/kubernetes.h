#pragma once
// Renders a cluster job, or a matrix of them, as Kubernetes manifests.

#include <string>

#include "pipeline/cluster/cluster_array.h"

namespace ggufmill {

struct KubernetesOptions {
  std::string image = "ggufmill:latest";  // image that contains the program
  std::string claim;                      // PersistentVolumeClaim with the job and the models, writable by all pods
  std::string mount;  // its mount path, the same as on this host; empty: that of the job's file system
};

// Returns a List of two Jobs as JSON, which kubectl accepts just like YAML: the parts as an Indexed Job, and the seal
// as a Job that waits for them. A part that exits with 75 is retried; a part that exits with any other code fails
// without affecting the others. Written to the published schema of batch/v1 (Kubernetes 1.33); not tested against a
// server.
// Fails with exit code 2 if the mount path hides files of the image, or if the jobs' folders are not below it.
Result<std::string> kubernetes_manifest(const ClusterArray& array, const KubernetesOptions& options);

// Returns the mount point of the file system that contains the folder; "/" if the folder does not exist.
std::string mount_point_of(const std::string& path);

}  // namespace ggufmill
