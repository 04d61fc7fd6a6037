// Package kubernetes builds network modes on the user's Kubernetes cluster: the cluster places
// pods, and toll runs in each of them as an agent (see package agent). The agent's only connection
// is the API server's exec stream: no port is opened for it, and the user's own credentials decide
// what is permitted. (attach would need no second process, but the runtime logs what a pod's first
// process prints.)
//
// Plug-ins differ in what is between two pods, so the catalogue has only the ends of a path
// (mode.Mode.Fits), and agents find the hops in between on the nodes. Nodes have other traffic:
// their devices must have counted the load, and may have counted more; the pods' own devices must
// have counted the load alone.
//
// Everything that it makes, pods and services in one namespace, has RunLabel; a journal, written
// before the first of them, says where. It is removed when the backend is closed. Pods end when
// their toll is gone, and at a deadline at the latest.
package kubernetes
