"""The server side of the Kubernetes API over a small storage port; it knows no kind of ours."""
