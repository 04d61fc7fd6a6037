package dockerapi

import "github.com/bridgetoll/bridgetoll/internal/machine"

// NoOverlay6 explains why overlay networks lack IPv6. The driver ignores IPv6 subnets, though
// `docker network create -d overlay --ipv6` succeeds (moby at b985e23). With a named subnet tasks
// do not start; without one, the nodes' tunnels lack entries for each other (Docker Engine 28.5.2;
// moby/moby#48116, #43615).
var NoOverlay6 = &machine.UnsupportedError{
	Missing: "Docker's overlay networks carry no IPv6 between nodes, up to Docker Engine 29",
	Remedy:  "--on lab, which builds such a network without Docker; or -4",
	Lack:    machine.LackIPv6}
