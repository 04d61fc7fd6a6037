package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type modeRecipe struct {
	build func(*site) error
	// needs lists needs in addition to those of every mode.
	needs []need
	// more returns needs that depend on the path; nil: there are no such needs.
	more func(*Lab, path.Spec) []need
	bare bool
	// beside means that the containers are not on Docker's bridges. Docker's IPv6 chains then have
	// no rules.
	beside bool
	swarm  bool // Docker's form of the mode needs a swarm
	// onSwitch means that the card is a port of the mode's switch, which drops packets larger than
	// the wire's MTU.
	onSwitch bool
}

var recipes = map[mode.Name]modeRecipe{
	mode.Native:         {build: (*site).native, bare: true},
	mode.Host:           {build: (*site).host},
	mode.Shared:         {build: (*site).shared},
	mode.Bridge:         {build: (*site).bridge},
	mode.BridgeDefault:  {build: (*site).bridgeDefault},
	mode.Publish:        {build: (*site).publish, more: (*Lab).needsOfPublish},
	mode.PublishDefault: {build: (*site).publishDefault, more: (*Lab).needsOfPublish},
	mode.PublishNAT:     {build: (*site).publishNAT, more: (*Lab).needsOfNAT},
	mode.PublishProxy:   {build: (*site).publishProxy, more: (*Lab).needsOfProxy},
	mode.Fast:           {build: (*site).fast, more: (*Lab).needsOfFast},
	mode.RootlessPublish: {build: (*site).rootlessPublish, needs: []need{needKit},
		more: (*Lab).needsOfRootlessPublish},
	mode.GvisorTapVsock: {build: (*site).gvisor, bare: true, needs: []need{needGvisor},
		more: (*Lab).needsOfRelay},
	mode.RootlessPort: {build: (*site).rootlessPort, needs: []need{needRootlessPort},
		more: (*Lab).needsOfRelay},
	mode.RootlessPublishNAT: {build: (*site).rootlessPublishNAT, needs: []need{needKit},
		more: (*Lab).needsOfRelay},
	mode.RootlessPublishTap: {build: (*site).rootlessPublishTap, needs: []need{needKit},
		more: (*Lab).needsOfSlirp},
	mode.FastLinks: {build: (*site).fastLinks, needs: []need{needBigTCP},
		more: (*Lab).needsOfFast},
	mode.PublishIngress: {build: (*site).publishIngress, needs: []need{needVXLAN, needIPVS},
		swarm: true},
	mode.Routed:   {build: (*site).routed},
	mode.Link:     {build: (*site).linked, needs: []need{needBridgeNF}},
	mode.Pipework: {build: (*site).pipework, beside: true, onSwitch: true},
	mode.NATAlias: {build: (*site).natAlias, needs: []need{needMacvlan},
		more: (*Lab).needsOfNAT},
	mode.MacvlanBridge:   {build: (*site).macvlan, needs: []need{needMacvlan}, beside: true},
	mode.MacvlanPrivate:  {build: (*site).macvlan, needs: []need{needMacvlan}, beside: true},
	mode.MacvlanVEPA:     {build: (*site).macvlan, needs: []need{needMacvlan}, beside: true},
	mode.MacvlanPassthru: {build: (*site).macvlan, needs: []need{needMacvlan}, beside: true},
	mode.IPvlanL2:        {build: (*site).ipvlan, needs: []need{needIPvlan}, beside: true},
	mode.IPvlanL3:        {build: (*site).ipvlan, needs: []need{needIPvlan}, beside: true},
	mode.IPvlanL3S:       {build: (*site).ipvlan, needs: []need{needIPvlan}, beside: true},
	mode.OVS: {build: (*site).vswitch, needs: []need{needOVS}, beside: true,
		onSwitch: true},
	mode.Overlay: {build: (*site).overlay, needs: []need{needVXLAN}, beside: true,
		swarm: true},
	mode.OverlayEncrypted: {build: (*site).overlay, needs: []need{needVXLAN, needESP},
		beside: true, swarm: true},
	mode.Pasta: {build: (*site).pasta, bare: true, needs: []need{needPasta},
		more: (*Lab).needsOfPasta},
	mode.Slirp4netns: {build: (*site).slirp4netns, bare: true, needs: []need{needSlirp},
		more: (*Lab).needsOfSlirp},
	mode.Netkit: {build: (*site).netkitPairs, needs: []need{needNetkit}, beside: true},
	mode.Pod:    {build: (*site).pod, needs: []need{needForwarding}, bare: true},
}
