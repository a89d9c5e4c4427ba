//go:build commands

// Package cluster names the five programs of the control plane that the tests run against.
//
// Nothing here is ever compiled as a package: the imports exist so that "go mod tidy" keeps the modules of these
// programs in go.mod and their hashes in go.sum. build.py compiles the programs themselves.
package cluster

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
