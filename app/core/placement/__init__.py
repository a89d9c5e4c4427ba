"""Where should the pods of a workload land, so that they are near each other and the cluster stays in one piece?

Theory of operation, after Kueue's tas_flavor_snapshot.go (KEP-2724). The nodes of a flavor form a tree along the labels
of its topology: blocks, racks, hosts. For one pod set the search has two phases.

1. *Count*, bottom up (``counts``): how many of its pods fit into each leaf, and from that into every domain above; in
   whole slices from the slice level up, and with or without room for the leader of its group.
2. *Choose*, top down: the level and the domains there that take everything (``search``), then level by level the
   domains below, until every pod has a leaf (``descent``). Both consume domains in a total order by one rule
   (``greedy``): largest first and the tightest fit last, or smallest first where nearness does not matter.

Everything is arrays. The leaves lie in the order of their label paths (``tree``), so each domain is a contiguous range
of the level below and a roll-up is one ``reduceat`` a level. What is free is one array per resource (``stock``); which
nodes a pod may use at all is a mask per class of pods (``screen``). The counts of a shape of pods are kept, and catch
up with the few leaves that changed since they were asked for last: placing the same shape again costs a selection, not
a recount. A ``site`` is all that for one flavor, ``sites`` are the flavors of a cluster and what is placed on them.

What always holds: a plan never puts more on a leaf than its count allows (recounted before it is handed out), domains
are ordered by their paths in every tie, and no numpy value leaves this package. Alone in the core it knows numpy.
"""
