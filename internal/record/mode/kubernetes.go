package mode

import "slices"

// ofCluster returns a mode with the fields that all of Kubernetes's modes share.
func ofCluster(m Mode) Mode {
	m.Kubernetes = true
	m.No6 = "toll dials the IPv4 addresses of pods, services and nodes"
	return m
}

var pod = ofCluster(Mode{
	Name:    Pod,
	Summary: "a pod's own address, by the cluster's network plug-in",
	Docker:  "none (Kubernetes: the pod's IP)",
	Short:   "pod IP",
	Caveat:  "every pod of the cluster reaches every port, but for network policies",
	Model:   true,
	Routes:  podRoutes,
	Rungs: []Rung{
		{From: FromContainer, To: ToOutside, Below: Host,
			Part: "a network namespace of its own, by the cluster's network plug-in"},
		{From: FromHost, To: ToContainer, Below: Host,
			Part: "a network namespace of its own, by the cluster's network plug-in"},
		{From: FromContainer, To: ToContainer, Below: Shared,
			Part: "a network namespace for each, joined by the cluster's network plug-in"},
		{From: FromRemote, To: ToContainer, Below: Host,
			Part: "a network namespace of its own, by the cluster's network plug-in"},
		{From: FromRemoteContainer, To: ToContainer, Below: Host,
			Part: "a network namespace on each node, joined by the cluster's network plug-in"},
	},
})

var headless = ofCluster(Mode{
	Name:    Headless,
	Summary: "a pod's own address, which the cluster's DNS server gave for a service's name",
	Docker:  "none (Kubernetes: Service with clusterIP None)",
	Short:   "headless service",
	Caveat:  "every pod of the cluster reaches every port, but for network policies",
	Routes:  []Route{podRoutes[1], podRoutes[3]},
	Apart:   []Apart{ofPods(FromHost), ofPods(FromRemote)},
	Rungs: []Rung{
		{From: FromContainer, To: ToContainer, Below: Pod,
			Part: "a name that was looked up before", Unseen: true},
		{From: FromRemoteContainer, To: ToContainer, Below: Pod,
			Part: "a name that was looked up before", Unseen: true},
	},
})

var clusterIP = ofCluster(Mode{
	Name:    ClusterIP,
	Summary: "a service's address, which the client's node rewrites to the pod's (kube-proxy)",
	Docker:  "none (Kubernetes: Service of type ClusterIP)",
	Short:   "cluster IP",
	PerPort: true,
	Routes: []Route{
		{FromHost, ToContainer, []HopKind{HopDNAT, HopBridge, HopVeth}},
		{FromContainer, ToContainer, []HopKind{HopVeth, HopDNAT, HopBridge, HopVeth}},
		{FromRemote, ToContainer, []HopKind{HopDNAT, HopWire, HopBridge, HopVeth}},
		{FromRemoteContainer, ToContainer, []HopKind{
			HopVeth, HopBridge, HopDNAT, HopWire, HopBridge, HopVeth}},
	},
	Rungs: aboveAll([]Placement{FromHost, FromContainer, FromRemote, FromRemoteContainer},
		ToContainer, Pod, "NAT of a service's address on the client's node"),
})

var hostPort = ofCluster(Mode{
	Name:    HostPort,
	Summary: "a port of the pod's node, rewritten to the pod's (the plug-in portmap, or the network's own)",
	Docker:  "none (Kubernetes: hostPort)",
	Short:   "host port",
	Caveat:  "the port of the node is taken",
	PerPort: true,
	Routes:  portRoutes(HopDNAT),
	Rungs: aboveAll([]Placement{FromHost, FromContainer, FromRemote,
		FromRemoteContainer}, ToAddress, Pod, "NAT of a port of the server's node"),
})

var nodePortLocal = ofCluster(Mode{
	Name:    NodePortLocal,
	Summary: "a service's port on the pod's node, which keeps the client's address",
	Docker:  "none (NodePort, externalTrafficPolicy: Local)",
	Short:   "node port (local)",
	Caveat:  "nodes without a pod of the service do not answer",
	PerPort: true,
	Routes:  portRoutes(HopDNAT)[2:],
	Apart:   []Apart{ofTheNode(FromHost), ofTheNode(FromContainer)},
	Rungs: aboveAll([]Placement{FromRemote, FromRemoteContainer}, ToAddress, Pod,
		"NAT of a service's port on the server's node"),
})

var nodePort = ofCluster(Mode{
	Name:    NodePort,
	Summary: "a service's port on any node, which rewrites the client's address, too",
	Docker:  "none (NodePort, externalTrafficPolicy: Cluster)",
	Short:   "node port",
	Caveat:  "the server sees the node's address, not the client's",
	PerPort: true,
	Routes:  portRoutes(HopDNAT, HopSNAT),
	Rungs: append(aboveAll([]Placement{FromHost, FromContainer}, ToAddress, Pod,
		"NAT of a service's port on the server's node, and of the client's address"),
		aboveAll([]Placement{FromRemote, FromRemoteContainer}, ToAddress, NodePortLocal,
			"NAT of the client's address, too")...),
})

// The routes of Kubernetes's modes assume a network plug-in with a bridge on each node and routes
// between the nodes. Mode.Fits accepts those of other plug-ins.
var podRoutes = []Route{
	{FromHost, ToContainer, []HopKind{HopBridge, HopVeth}},
	{FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}},
	{FromRemote, ToContainer, []HopKind{HopWire, HopBridge, HopVeth}},
	{FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopWire, HopBridge, HopVeth}},
	{FromContainer, ToOutside, []HopKind{HopVeth, HopBridge, HopWire}},
}

func portRoutes(rewritten ...HopKind) []Route {
	way := func(first ...HopKind) []HopKind {
		return slices.Concat(first, rewritten, []HopKind{HopBridge, HopVeth})
	}
	return []Route{
		{FromHost, ToAddress, way()},
		{FromContainer, ToAddress, way(HopVeth)},
		{FromRemote, ToAddress, way(HopWire)},
		{FromRemoteContainer, ToAddress, way(HopVeth, HopBridge, HopWire)},
	}
}

func aboveAll(from []Placement, to Target, below Name, part string) []Rung {
	var out []Rung
	for _, p := range from {
		out = append(out, Rung{From: p, To: to, Below: below, Part: part})
	}
	return out
}

func ofTheNode(from Placement) Apart {
	return Apart{
		From:   from,
		Why:    "externalTrafficPolicy affects only clients on other machines: from the node itself both policies take the same path",
		Around: "nodeport; or --from remote,remote-container"}
}

func ofPods(from Placement) Apart {
	return Apart{From: from, Why: "only pods use the cluster's DNS server: nodes use another one",
		Around: "--from container,remote-container"}
}

// UsualOfKubernetes returns the names of the modes of a cluster that are compared by
// default.
func UsualOfKubernetes(unprivileged, outside bool) []string {
	inside := []string{string(Pod), string(ClusterIP)}
	usual := []string{string(NodePort)}
	switch {
	case outside:
		usual = append(usual, string(NodePortLocal))
	case unprivileged:
		return append(inside, usual...)
	default:
		usual = slices.Concat(usual, inside, []string{string(NodePortLocal)})
	}
	if unprivileged {
		return usual
	}
	return append([]string{string(Host), string(HostPort)}, usual...)
}
