"""What holds whatever happens: the laws of the core, held against random histories.

`books` works the quota out a second, slow time; `stage` plays the world of the conformance runner; `checks` compares
the two around every cycle. Where each law is held:

==  ==========================================================  ==========================================
1   usage of a node is the sum of what runs below it            `checks.the_books_agree`, after every step
2   no admission exceeds what a node may use                    `checks.admissions_fit`, every cycle
3   lending limits hold                                         the same: they are edges of the balance
4   nothing is admitted through a closed or missing queue       `checks.admissions_are_open`, every cycle
5   a gang is whole or absent                                   `checks.admissions_are_whole`, every cycle
6   victims are legal and none is superfluous                   `checks.victims_are_needed`, every cycle
7   same state in, same bytes out                               `test_determinism`
8   what was decided is not decided again                       `test_histories`: a quiet world stays quiet
9   a strict queue never overtakes                              `checks.strict_order_holds`, every cycle
10  a trial leaves no trace                                     `checks.deciding_left_no_trace`, every cycle
11  a plan may be interrupted anywhere                          `test_histories`: refused commits, restarts
12  the store's head order equals that of `ordering`            not here: there is no store in a pure core
13  the image kept by changes equals a full load                `checks.the_image_is_current`, every step
==  ==========================================================  ==========================================

Of the invariants: I1 is laws 2 and 3, I2 law 1, I11 law 4, I14 law 3, I15 laws 9 and `checks.nothing_idles`, I16 law 6,
I24 law 7. I8 (only the counters a core has: evictions and time spent) and I9 (an ending is final) are
`checks.nothing_goes_back`; I17 is `test_livelock`. Attempts and epochs belong to the store.
"""
