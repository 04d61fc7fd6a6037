package recipe

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Dual reports whether a path's networks have IPv6 in addition to IPv4, as with `docker network
// create --ipv6`, and its machines have Docker's IPv6 rules. On networks without IPv6, the default,
// docker-proxy serves connections to ::1 and to the machine's own IPv6 address.
func Dual(s path.Spec) bool {
	if m, _ := mode.Find(s.Mode); m.Rootless { // without Docker's networks, or with its default
		return false
	}
	switch s.Mode {
	case mode.Native, mode.Fast, mode.FastLinks:
		return false
	case mode.Host, mode.Shared:
		return s.To.Six()
	case mode.PublishProxy, mode.Publish, mode.PublishDefault:
		return s.To == mode.ToAddress6 && s.From == mode.FromContainer
	}
	return s.To.Six() && s.To != mode.ToLoopback6
}

// Proxied reports whether docker-proxy, if it listens on the published port, receives the path's
// connections.
func Proxied(s path.Spec) bool { return Crosses(mode.Publish, s.From, s.To, mode.HopProxy) }

// Crosses reports whether the usual route of a mode has a hop of the kind.
func Crosses(m mode.Name, from mode.Placement, to mode.Target, k mode.HopKind) bool {
	known, _ := mode.Find(m)
	r, _ := known.Route(from, to)
	return slices.Contains(r.Hops, k)
}

// Spliced reports whether a program that publishes the path's ports uses sockets in the containers
// instead of a tap device.
func Spliced(s path.Spec) bool { return !Crosses(s.Mode, s.From, s.To, mode.HopTap) }

// Names returns the modes of a backend's recipes, in the catalogue's order.
func Names[R any](recipes map[mode.Name]R) []string {
	var out []string
	for _, m := range mode.All() {
		if _, ok := recipes[m.Name]; ok {
			out = append(out, string(m.Name))
		}
	}
	return out
}
