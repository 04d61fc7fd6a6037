package mode

// A new mode needs a name here, a variable next to similar modes, and an entry in catalogue.
const (
	Native         Name = "native"
	Host           Name = "host"
	Shared         Name = "shared"
	Bridge         Name = "bridge"
	BridgeDefault  Name = "bridge-default"
	Publish        Name = "publish"
	PublishDefault Name = "publish-default"
	PublishNAT     Name = "publish-nat"
	PublishProxy   Name = "publish-proxy"
	Fast           Name = "fast"
	FastLinks      Name = "fast+links"
	PublishIngress Name = "publish-ingress"

	Pasta              Name = "pasta"
	Slirp4netns        Name = "slirp4netns"
	GvisorTapVsock     Name = "gvisor-tap-vsock"
	RootlessPort       Name = "rootlessport"
	RootlessPublishTap Name = "rootless-publish-tap"
	RootlessPublishNAT Name = "rootless-publish-nat"
	RootlessPublish    Name = "rootless-publish"

	Routed           Name = "routed"
	Link             Name = "link"
	NATAlias         Name = "nat-alias"
	Pipework         Name = "pipework"
	MacvlanBridge    Name = "macvlan-bridge"
	MacvlanPrivate   Name = "macvlan-private"
	MacvlanVEPA      Name = "macvlan-vepa"
	MacvlanPassthru  Name = "macvlan-passthru"
	IPvlanL2         Name = "ipvlan-l2"
	IPvlanL3         Name = "ipvlan-l3"
	IPvlanL3S        Name = "ipvlan-l3s"
	OVS              Name = "ovs"
	Overlay          Name = "overlay"
	OverlayEncrypted Name = "overlay-encrypted"
	Netkit           Name = "netkit"

	Pod           Name = "pod"
	HostPort      Name = "hostport"
	ClusterIP     Name = "clusterip"
	NodePort      Name = "nodeport"
	NodePortLocal Name = "nodeport-local"
	Headless      Name = "headless"
)

// catalogue lists the modes in display order, from the fewest parts to the most. A mode that
// resembles two others is placed on a ladder above the one with which it shares more.
//
// Docker's modes have the hops of Docker Engine's own rules; see internal/paths/lab for the
// versions.
var catalogue = []Mode{
	native, host, shared,
	bridge, bridgeDefault,
	publish, publishDefault, publishNAT, publishProxy, fast, fastLinks,
	pasta, slirp4netns, gvisorTapVsock, rootlessPort, rootlessPublishTap, rootlessPublishNAT,
	rootlessPublish,
	publishIngress,
	routed, link, natAlias, pipework,
	macvlanBridge, macvlanPrivate, macvlanVEPA, macvlanPassthru, ipvlanL2, ipvlanL3, ipvlanL3S,
	ovs, overlay, overlayEncrypted, netkit,
	pod, headless, clusterIP, hostPort, nodePortLocal, nodePort,
}
