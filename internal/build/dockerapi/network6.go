package dockerapi

import "github.com/bridgetoll/bridgetoll/internal/build/path"

// NoOverlay6 says why overlay networks have no IPv6. `docker network create -d overlay --ipv6` is
// accepted; the driver's CreateNetwork takes no subnet of IPv6 all the same (moby at b985e23, 2026-08), a
// task does not start if one is named, and if none is, each node gives out addresses of its own, for
// which the others' tunnels have no entry (seen with Docker Engine 28.5.2; moby/moby#48116, #43615).
var NoOverlay6 = &path.UnsupportedError{Missing: "Docker's overlay networks carry no IPv6 between nodes, up to Docker Engine 29",
	Remedy: "--on lab, which builds what it would be; or -4"}
