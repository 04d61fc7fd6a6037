// Package kubernetes builds network modes on the user's Kubernetes cluster. The cluster places
// pods, and toll runs in each of them as an agent (see package agent). The agent's only connection
// is an exec stream of the API server, so no port is opened, and the user's own credentials decide
// what is permitted. (An attach stream would not do, because the container runtime would log it.)
//
// What is between two pods depends on the network plug-in, so agents find these hops on the nodes
// (mode.Mode.Fits). The nodes' devices may count other packets as well. The pods' own devices must
// count the load alone.
//
// A journal is written before the first object is made and names the namespace. All objects there
// have runLabel. Pods end with their toll, or at a deadline.
package kubernetes
