package docker

import (
	"context"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type modeRecipe struct {
	build func(*site) error
	// A rootless Docker suffices: the mode uses none of its networks.
	alone bool
	// first runs before any trial, check after the trial of a published port. Both may be nil.
	first func(*engine) error
	check func(*engine, context.Context, path.Spec, *trial) error
	// refusal over IPv6
	no6 *path.UnsupportedError
	// refusal without a recipe; with one, of all but the way out
	lacks *path.UnsupportedError
}

// plugged4 is for containers that toll itself gives a device.
var plugged4 = &path.UnsupportedError{
	Missing: "on a switch of its own beside the engine's networks toll gives containers IPv4 addresses only",
	Remedy:  "--on lab, or -4"}

var recipes = map[mode.Name]modeRecipe{
	mode.Native:             {build: (*site).native, alone: true},
	mode.Host:               {build: (*site).host},
	mode.Shared:             {build: (*site).shared, alone: true},
	mode.Bridge:             {build: (*site).bridge},
	mode.BridgeDefault:      {build: (*site).bridgeDefault, check: (*engine).checkDefault},
	mode.Publish:            {build: (*site).publish, check: (*engine).checkPublish},
	mode.PublishDefault:     {build: (*site).publishDefault, check: (*engine).checkPublish},
	mode.PublishNAT:         {build: (*site).publishNAT, check: (*engine).checkNAT},
	mode.PublishProxy:       {build: (*site).publishProxy, check: (*engine).checkProxy},
	mode.RootlessPublish:    {build: rootlessPorts((*site).publishProxy), check: (*engine).checkRootlessPublish},
	mode.RootlessPublishNAT: {build: rootlessPorts((*site).publishNAT), check: (*engine).checkRootlessNAT},
	mode.RootlessPublishTap: {build: rootlessPorts((*site).publishNAT), check: (*engine).checkRootlessTap},
	mode.Fast:               {build: (*site).fast, check: (*engine).checkFast},
	mode.FastLinks:          {build: (*site).fastLinks, check: (*engine).checkFastLinks},
	mode.Routed:             {build: (*site).routed, check: (*engine).checkRouted},
	mode.Link:               {build: (*site).linked, check: (*engine).checkLink},
	mode.Pipework:           {build: (*site).pipework, check: (*engine).checkBridge, no6: plugged4},
	mode.OVS:                {build: (*site).vswitch, check: (*engine).checkSwitch, no6: plugged4},
	mode.Overlay: {build: (*site).overlay, first: (*engine).checkSwarm,
		no6: dockerapi.NoOverlay6},
	mode.MacvlanBridge: {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.MacvlanVEPA:   {build: (*site).subInterfaces, check: (*engine).checkVEPA},
	mode.IPvlanL2:      {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.IPvlanL3:      {build: (*site).subInterfaces, check: (*engine).checkParent},
	mode.IPvlanL3S:     {build: (*site).subInterfaces, check: (*engine).checkParent},

	mode.NATAlias: {lacks: &path.UnsupportedError{
		Missing: "toll makes no alias of a card that the machine uses, and writes no NAT rules beside Docker's", Remedy: "--on lab"}},
	mode.Netkit: {lacks: &path.UnsupportedError{
		Missing: "Docker has no netkit networks", Remedy: "--on lab"}},
	mode.MacvlanPrivate: {build: (*site).subInterfaces, check: (*engine).checkParent,
		lacks: &path.UnsupportedError{
			Missing: "containers of a private macvlan network only talk to other machines, and here is one machine",
			Remedy:  "macvlan-bridge; --to outside with --peer; or --on lab"}},
	mode.MacvlanPassthru: {lacks: &path.UnsupportedError{
		Missing: "passthru gives the card to one container, which then only talks to other machines, and here is one machine", Remedy: "macvlan-bridge, or --on lab"}},
	mode.PublishIngress: {lacks: &path.UnsupportedError{
		Missing: "the routing mesh needs a swarm, and its IPVS is in a namespace that only dockerd knows: toll does not read it", Remedy: "--on swarm or lab"}},
	mode.OverlayEncrypted: {lacks: &path.UnsupportedError{
		Missing: "an encrypted overlay needs two machines, and here is one",
		Remedy:  "--on lab"}},
}
