"""What kube-apiserver fills into pods and templates, and what it refuses in them; pure."""
