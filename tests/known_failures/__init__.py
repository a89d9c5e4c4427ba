"""Real defects of admission controllers, played as small scenarios with the right outcome.

One file a theme, one test a defect; the comment names the public issue it comes from. Every scenario runs on the
`Stage` of `tests.laws`, so that all laws are held around it, too. Themes and where they are, with the number of the
entry in the collection of known failures; "half" means the part a decision can be blamed for, the rest belongs to whom
is named:

==  ==========================  ================================================================================
Q   `test_quota_accounting`     02 05 13 15 16 19; half: 20 (adapter reads the refusal), 21 and 22 (the cluster
                                side says when pods are gone)
D   `test_lost_updates`         01 02 05 06 08 10 13 15 16
P   `test_preemption`           01 02 03 05 09 12 15 19 22 25 26
F   `test_flavors`              01 02 05 06 08 09 10; half: 12 (adapter restores the template)
C   `test_cohorts`              01 03 06 08
S   `test_fair_sharing`         05 08 09 12
A   `test_partial_admission`    02 04
R   `test_requeueing`           01 02 04 08 11 12
L   `test_queue_lifecycle`      01 03 05 07 12
N   `test_quantities`           04 05 08 09
K   `test_clocks`               01
==  ==========================  ================================================================================

Not shown by a core, and where they belong: F-11 (start patch) to the job adapters; R-10 to the second pass of
placement, the LimitRange part of N-09 to LimitRanges; R-06 (owners that recreate) to the engine; L-02 (status while
terminating) to the engine's statuses; N-13 and N-17 (names, NUL bytes) to intake and store; K-04 (lease clocks) and
K-05 (cursors on time) to the store; multi-cluster, webhook, database and leadership entries to their own tests.

Where the right outcome was ours to choose: A-04, the whole size is tried first, with preemption, and only then a
smaller one, as Kueue does. K-01, equal seconds are told apart by uid alone, as in Kueue: a sequence number of our own
would be another order after a move to another database. P-26, best effort starves the big one; a strict queue is the
remedy. F-08, without a placement that can fail, a flavor is lost to a competitor instead. `test_departures` shows where
we decide otherwise than Kueue on purpose.
"""
