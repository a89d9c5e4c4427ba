"""Kueue's feature gates: which names exist, and which of them change anything here.

A gate that is known and not used is accepted, because a file that works with Kueue shall work here; a name that Kueue
does not have is a typing mistake. The list is Kueue's of 0.20; older names come and go with its releases.
"""

#: What Policy is made with; their values are Kueue's defaults.
USED: dict[str, bool] = {
    "AdmissionFairSharing": True,
    "DisableWaitForPodsReady": False,
    "ManagedJobsNamespaceSelectorAlwaysRespected": True,
    "PartialAdmission": True,
    "QuotaCheckStrategy": True,
    "ReclaimablePods": True,
}

_UNUSED = """
    AdmissionGatedBy AssignQueueLabelsForPods CleanupProvisioningRequestsOnEviction ConcurrentAdmission
    CustomMetricLabels DeferRayServiceFinalizationForRedisCleanup ElasticJobsViaWorkloadSlices
    ElasticJobsViaWorkloadSlicesWithTAS FailureRecoveryPolicy FairSharingPreemptWithinNominal
    FairSharingPrioritizeNonBorrowing FastQuotaReleaseInPodIntegration FinishOrphanedWorkloads FlavorFungibility
    FlavorFungibilityPreserveScanProgress KueueDRAIntegration KueueDRAIntegrationConsumableCapacity
    KueueDRAIntegrationExtendedResource KueueDRAIntegrationPartitionableDevices
    KueueDRARejectWorkloadsWhenDRADisabled LWSImmutableGroupSize LocalQueueMetrics
    MetricForWorkloadCreationLatency MetricsForCohorts MultiKueue MultiKueueAdaptersForCustomJobs
    MultiKueueClusterProfile MultiKueueIncrementalDispatcherConfig
    MultiKueueIncrementalDispatcherRespectConfigOrder MultiKueueKubeConfigPathValidation
    MultiKueueManagerQuotaAutomation MultiKueueOrchestratedPreemption MultiKueueRemoteSpecSync
    PodIntegrationValidateGroupOwner PrioritizePreemptorWorkloads PriorityBoost PrioritySortingWithinCohort
    RecomputeAssignmentUponPreemptionTargetsOverlap RejectUpdatesToCQWithInvalidOnFlavors
    RemoveFinalizersWithStrictPatch SchedulerLibraryIntegration SchedulingEquivalenceHashing ShortWorkloadNames
    SkipAncestorCheckForDeletedWorkloads SkipReassignmentForPodOwnedWorkloads SparkApplicationIntegration
    TASAssignmentsEncodingByHostnamePrefix TASBalancedPlacement TASCacheNodeMatchResults TASCacheTopologyTree
    TASCachingRemainingResources TASFailedNodeReplacement TASFailedNodeReplacementFailFast
    TASHandleOverlappingFlavors TASMultiLayerTopology TASProfileMixed TASRecomputeAssignmentWithinSchedulingCycle
    TASReplaceNodeDueToNotReadyOverFixedTime TASReplaceNodeOnNodeTaints TASReplaceNodeOnPodTermination
    TASRespectNodeAffinityPreferred TASValidateWorkloadSliceSize TLSOptions TopologyAwareScheduling
    UnadmittedWorkloadsExplicitStatus UnadmittedWorkloadsObservability ValidateRayAndSparkJobUpdates
    VectorizedResourceRequests VisibilityOnDemand WorkloadIdentifierAnnotations WorkloadPriorityClassDefaulting
    WorkloadRequestUseMergePatch WorkloadValidateResourcesAreNonNegative WorkloadValidationForPodSetMetadata
"""

KNOWN = frozenset(USED) | frozenset(_UNUSED.split())
