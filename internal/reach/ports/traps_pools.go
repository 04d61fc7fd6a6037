package ports

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// poolShare is the share of a pool's addresses, or of the default pools' networks.
const poolShare = 0.9

// neighbours finds tables of neighbours that are nearly full.
func (f *Facts) neighbours([]Row) (out []Trap) {
	for _, n := range f.Neighbours {
		if n.Max == 0 || float64(n.Entries) < fullShare*float64(n.Max) {
			continue
		}
		of := "net." + n.Family + ".neigh.default.gc_thresh"
		out = append(out, Trap{Code: NeighboursFull, About: Reason{Code: NeighboursFull},
			Evidence: fmt.Sprintf("it has %s of %s3 %d, counted over all network namespaces",
				units.Plural(n.Entries, "entry"), of, n.Max),
			Remedy: untriable(fmt.Sprintf("sudo sysctl -w %s2=%d %s3=%d", of, n.Max, of, 2*n.Max),
				"the table is that of all network namespaces")})
	}
	return out
}

// pools finds networks without addresses for further containers, and default address pools without
// room for further networks.
func (f *Facts) pools([]Row) []Trap {
	t := about(AddressesUsed)
	t.Remedy = "create a network with a larger --subnet (and --ip-range), and move the containers"
	for _, n := range f.Networks {
		size, used := n.addresses(), 0
		for _, c := range f.Containers {
			if c.PID != 0 && slices.Contains(c.Networks, n.Name) {
				used++
			}
		}
		if size > 0 && n.Scope == "local" && float64(used) >= poolShare*float64(size) {
			t.Evidence = joined("; ", t.Evidence, fmt.Sprintf(
				"%d of the %d addresses for containers in %s %s in use", used, size, n.Name,
				units.Agree(used, "is", "are")))
		}
	}
	var out []Trap
	if t.Evidence != "" {
		out = append(out, t)
	}
	return append(out, f.defaultPools()...)
}

func (f *Facts) defaultPools() []Trap {
	room, used := 0, 0
	for _, p := range f.AddressPools {
		if bits := p.Size - p.Base.Bits(); p.Base.Addr().Is4() && 0 <= bits && bits < maxBits {
			room += 1 << bits
		}
	}
	for _, n := range f.Networks {
		if slices.ContainsFunc(n.Pools, func(own netip.Prefix) bool {
			return slices.ContainsFunc(f.AddressPools, func(p AddressPool) bool {
				return own.Bits() >= p.Base.Bits() && p.Base.Contains(own.Addr())
			})
		}) {
			used++
		}
	}
	if room == 0 || float64(used) < poolShare*float64(room) {
		return nil
	}
	return []Trap{{Code: AddressesUsed, About: Reason{Code: PoolsUsed},
		Evidence: fmt.Sprintf("%d of %d networks of the default pools exist", used, room),
		Remedy: untriable("docker network prune", withoutDaemons) + ", or smaller networks from " +
			"more pools: \"default-address-pools\" in daemon.json"}}
}

// maxBits keeps sizes small enough to count with.
const maxBits = 30

// addresses returns the number of IPv4 addresses for containers, or 0 if it is not known.
func (n Network) addresses() (size int) {
	// The network's, the gateway's and the broadcast address are taken.
	pools, taken := n.Pools, 3
	if len(n.Ranges) > 0 {
		pools, taken = n.Ranges, 0
	}
	for _, p := range pools {
		if bits := 32 - p.Bits(); p.Addr().Is4() && bits < maxBits && n.Driver != "null" {
			size += max(0, 1<<bits-taken)
		}
	}
	return size
}
