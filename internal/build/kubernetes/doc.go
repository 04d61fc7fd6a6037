// Package kubernetes builds network modes on the Kubernetes cluster that its user has: the cluster
// places pods, and toll runs in each of them as an agent (see package agent). The agent's only
// connection is the API server's exec stream: no port is opened for it, and the user's own
// credentials decide what may be done.
//
// All that it makes, pods and services in one namespace, carries RunLabel, and a journal says where,
// written before the first of them. It is gone when the backend is closed. Pods end by themselves
// when their toll is gone, and at a deadline at the latest.
package kubernetes
