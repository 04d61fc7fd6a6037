// Package kubernetes builds network modes on the user's Kubernetes cluster: the cluster places
// pods, and toll runs in each of them as an agent (see package agent). The agent's only connection
// is the API server's exec stream, because the runtime would log an attach stream: no port is
// opened, and the user's own credentials decide what is permitted.
//
// Plug-ins differ in what is between two pods, so agents find those hops on the nodes
// (mode.Mode.Fits). The nodes' devices may count more than the load. The pods' own devices must
// count the load alone.
//
// A journal, which is written first, names the namespace. All objects there have runLabel. Pods end
// with their toll, and at a deadline at the latest.
package kubernetes
