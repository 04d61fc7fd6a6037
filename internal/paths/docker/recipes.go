package docker

import (
	"context"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type modeRecipe struct {
	build func(*site) error
	// alone means that the mode uses none of the engine's networks, so a rootless Docker suffices.
	alone bool
	// first is called before any trial, check after the trial of a published port. Both return why
	// the path cannot be built, and may be nil.
	first func(*engine) error
	check func(*engine, context.Context, path.Spec, *trial) error
	// no6 refuses paths over IPv6; nil: they can be built.
	no6 *machine.UnsupportedError
	// lacks refuses the mode: all paths if build is nil, else all but those to the outside.
	lacks *machine.UnsupportedError
}

// plugged4 refuses IPv6 in modes where toll, not Docker, gives containers their device.
var plugged4 = &machine.UnsupportedError{
	Missing: "on a switch of its own, toll gives containers IPv4 addresses only",
	Remedy:  "--on lab, or -4"}

var recipes = map[mode.Name]modeRecipe{
	mode.Native:        {build: (*site).native, alone: true},
	mode.Host:          {build: (*site).host},
	mode.Shared:        {build: (*site).shared, alone: true},
	mode.Bridge:        {build: (*site).bridge},
	mode.BridgeDefault: {build: (*site).bridgeDefault, check: (*engine).checkDefault},
	mode.Publish: {build: onPorts((*site).publishedAnyhow),
		check: (*engine).checkPublish},
	mode.PublishDefault: {build: onDefaultPorts((*site).publishedAnyhow),
		check: (*engine).checkPublish},
	mode.PublishNAT:   {build: onPorts((*site).translated), check: (*engine).checkNAT},
	mode.PublishProxy: {build: onPorts((*site).relayed), check: (*engine).checkProxy},
	mode.RootlessPublish: {build: rootlessPorts((*site).relayed),
		check: (*engine).checkRootlessPublish},
	mode.RootlessPublishNAT: {build: rootlessPorts((*site).translated),
		check: (*engine).checkRootlessNAT},
	mode.RootlessPublishTap: {build: rootlessPorts((*site).translated),
		check: (*engine).checkRootlessTap},
	mode.Fast:      {build: onPorts((*site).fast), check: (*engine).checkFast},
	mode.FastLinks: {build: onPorts((*site).fastLinks), check: (*engine).checkFastLinks},
	mode.Routed:    {build: (*site).routed, check: (*engine).checkRouted},
	mode.Link:      {build: (*site).linked, check: (*engine).checkLink},
	mode.Pipework:  {build: (*site).pipework, check: (*engine).checkBridge, no6: plugged4},
	mode.OVS:       {build: (*site).vswitch, check: (*engine).checkSwitch, no6: plugged4},
	mode.Overlay: {build: (*site).overlay, first: (*engine).checkSwarm,
		no6: dockerapi.NoOverlay6},
	mode.MacvlanBridge: {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.MacvlanVEPA:   {build: (*site).subInterfaces, check: (*engine).checkVEPA},
	mode.IPvlanL2:      {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.IPvlanL3:      {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.IPvlanL3S:     {build: (*site).subInterfaces, check: (*engine).checkParent},

	mode.NATAlias: {lacks: &machine.UnsupportedError{
		Missing: "toll adds no alias to a card that the machine uses, and no NAT rules to Docker's", Remedy: "--on lab"}},
	mode.Netkit: {lacks: &machine.UnsupportedError{
		Missing: "Docker has no netkit networks", Remedy: "--on lab"}},
	mode.MacvlanPrivate: {build: (*site).subInterfaces, check: (*engine).checkParent,
		lacks: &machine.UnsupportedError{
			Missing: "containers on a private macvlan network reach only other machines, and there is only this one",
			Remedy:  "macvlan-bridge; --to outside with --peer; or --on lab"}},
	mode.MacvlanPassthru: {lacks: &machine.UnsupportedError{
		Missing: "passthru gives the card to one container, which then reaches only other machines, and there is only this one", Remedy: "macvlan-bridge, or --on lab"}},
	mode.PublishIngress: {lacks: &machine.UnsupportedError{
		Missing: "the routing mesh needs a swarm, and its IPVS is in a namespace of dockerd's that toll does not read", Remedy: "--on swarm or lab"}},
	mode.OverlayEncrypted: {lacks: &machine.UnsupportedError{
		Missing: "an encrypted overlay needs two machines, and there is only this one",
		Remedy:  "--on lab"}},
}
