"""Job framework adapters: manifests in, facts or patches out; one file a kind or family."""
