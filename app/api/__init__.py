"""The front door for people and kubectl: the Kubernetes face, authentication, health."""
