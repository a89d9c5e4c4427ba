"""What are the labels, annotations and gates called that Sluice reads and writes on jobs, pods and Workloads?

Names under ``kueue.x-k8s.io/`` are Kueue's, letter for letter, because manifests in the world carry them; names under
``sluice.dev/`` are ours and exist so that a job says by itself which decision it is carrying out. Only names live
here, no rule about them.
"""

from typing import Final

# Kueue's, on jobs
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
COMPLETIONS_EQUAL_PARALLELISM: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
ADMISSION_GATED_BY: Final = "kueue.x-k8s.io/admission-gated-by"
PROVISIONING_PREFIX: Final = "provreq.kueue.x-k8s.io/"

# Kueue's, on Workloads
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
RESOURCE_IN_USE: Final = "kueue.x-k8s.io/resource-in-use"

# Kueue's, on the pods of an admitted job
PODSET: Final = "kueue.x-k8s.io/podset"
CLUSTER_QUEUE_NAME: Final = "kueue.x-k8s.io/cluster-queue-name"
LOCAL_QUEUE_NAME: Final = "kueue.x-k8s.io/local-queue-name"
WORKLOAD: Final = "kueue.x-k8s.io/workload"

# Kueue's, on pod templates: topology requests
REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_TOPOLOGY: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"
PODSET_GROUP: Final = "kueue.x-k8s.io/podset-group-name"

# Ours, on jobs
ATTEMPT: Final = "sluice.dev/attempt"
"""The admission that unsuspended the job last."""
EPOCH: Final = "sluice.dev/epoch"
"""The term of the leader that wrote last; it never goes down."""
STOP: Final = "sluice.dev/stop"
"""The attempt that was stopped last. It outlives the stop, so a finished stop is told from one never begun."""
STOPPING: Final = "sluice.dev/stopping"
"""Present from the suspending write until the write that restores the template."""

MARKED_UID: Final = "sluice.dev/marked-uid"
"""The uid of the job that the four annotations above were written for."""

# Kubernetes'
JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_CONTROLLER_LABELS: Final = (
    CONTROLLER_UID,
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
"""Put on every Job's template by the apiserver; they name one Job and so do not belong in its Workload."""
