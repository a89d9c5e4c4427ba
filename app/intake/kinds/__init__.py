"""The kinds of ``kueue.x-k8s.io``: their shape, defaults and rules, one file a kind."""
