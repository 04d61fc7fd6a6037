// Package mode is the catalogue of network modes as data: names, placements, targets, hops and the
// isolation that they give up. The packages that build, plan and judge paths read it.
package mode

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Name is a mode's name on the command line and in results files.
type Name string

// Mode describes how a container gets its network.
type Mode struct {
	Name    Name
	Summary string
	Docker  string // in Docker's or Podman's words
	Short   string // at most 18 columns
	Out     string // Short of outward routes, which publish no port; "": Short
	Lost    string // the isolation that it gives up; "": none
	Caveat  string // what its users give up besides, or must know; "": nothing

	// Needs is what the mode takes besides an engine on one machine, such as "a Swarm"; "":
	// nothing.
	Needs string

	// PerPort means that the mode's rules or proxy are for one port and protocol.
	PerPort bool
	// TCPOnly means that datagrams do not take the mode's path.
	TCPOnly bool
	// WholeCard means that a container has the network card for itself, so a machine cannot have
	// two.
	WholeCard bool
	// Rare means that some kernels lack parts of the mode: it is also tested in a virtual machine.
	Rare bool
	// No6 is the reason why the mode has no route over IPv6; "": it has one.
	No6 string
	// NoOut6 is the reason why the mode has no outward route over IPv6; "": it has one, or no
	// reason is known.
	NoOut6 string
	// Usual modes are compared by default: what Docker offers without further programs, each in its
	// most common form.
	Usual bool
	// Rootless means that the mode belongs to an engine without root, in which a process relays
	// what crosses the edge of the engine's user namespace.
	Rootless bool
	// Kubernetes means that the mode belongs to a cluster instead of Docker Engine.
	Kubernetes bool
	// Model means that the lab builds the Kubernetes mode as well, which shows what a cluster adds
	// to the kernel's cost.
	Model bool

	// Routes lists the routes. After the inward routes from a placement come the outward ones.
	Routes []Route
	// Otherwise lists alternatives to routes in Routes with the same From and To, for engines with
	// the other setting of userland-proxy, an older RootlessKit, or other RootlessKit drivers.
	Otherwise []Route
	// Decides names the setting that selects an alternative to an inward route; "": there is none.
	Decides string
	// Podman lists such alternatives for engines on which Podman's rules publish the port.
	Podman []Route
	// Rungs has at most one inward rung from each placement, and one outward rung.
	Rungs []Rung
	// Apart lists placements that cannot reach the mode although users expect it.
	Apart []Apart
}

// Apart is a placement that cannot reach a mode's server, and why. It may have an outward route.
type Apart struct {
	From   Placement `json:"from"`
	Why    string    `json:"why"`
	Around string    `json:"way_round"` // the usual workaround
}

// PortIsolation reports whether the container can listen on a port that the machine or another
// container uses.
func (m Mode) PortIsolation() bool { return m.Lost == "" }

// GivesUp returns the isolation that the mode gives up, or "nothing".
func (m Mode) GivesUp() string { return cmp.Or(m.Lost, "nothing") }

// WhyNot returns why a placement cannot reach the mode: the mode's own reason, or which placements
// can. around is what to use instead.
func (m Mode) WhyNot(p Placement) (why, around string) {
	for _, a := range m.Apart {
		if a.From == p {
			return a.Why, a.Around
		}
	}
	var words []string
	for _, f := range m.Placements() {
		if len(m.RoutesInto(f)) > 0 {
			words = append(words, string(f))
		}
	}
	return "there is no such path: it can be reached from " + strings.Join(words, ", "),
		"--from " + words[0]
}

// Engine returns the program whose terms m.Docker uses: "Podman" or "Docker".
func (m Mode) Engine() string {
	if strings.HasPrefix(m.Docker, "podman ") {
		return "Podman"
	}
	return "Docker"
}

// WhyNotOut returns why an outward route from p is not measured, and what to request instead.
func (m Mode) WhyNotOut(p Placement) (why, around string) {
	for _, r := range m.Routes {
		switch {
		case !r.To.Outside():
		case r.From == p:
			return cmp.Or(m.NoOut6, "toll measures its way out over "+r.To.family()+" only"),
				"--to " + string(r.To)
		default:
			return "its way out starts at another placement", "--from " + string(r.From)
		}
	}
	return "toll does not measure its way out", string(Bridge)
}

// Placements returns the placements with a route, inward or outward, in the catalogue's order.
func (m Mode) Placements() []Placement {
	var out []Placement
	for _, r := range m.Routes {
		if !slices.Contains(out, r.From) {
			out = append(out, r.From)
		}
	}
	return out
}

// RoutesFrom returns the routes whose client runs at p.
func (m Mode) RoutesFrom(p Placement) []Route {
	var out []Route
	for _, r := range m.Routes {
		if r.From == p {
			out = append(out, r)
		}
	}
	return out
}

// RoutesInto returns the inward routes whose client runs at p.
func (m Mode) RoutesInto(p Placement) []Route {
	return slices.DeleteFunc(m.RoutesFrom(p), func(r Route) bool { return r.To.Outside() })
}

// Route returns the route from p to t; ok is false if the mode lacks one.
func (m Mode) Route(p Placement, t Target) (r Route, ok bool) {
	for _, r := range m.Routes {
		if r.From == p && r.To == t {
			return r, true
		}
	}
	return Route{}, false
}

// RoutesTo returns the routes from p to t: those in Routes, in Otherwise, in Podman.
func (m Mode) RoutesTo(p Placement, t Target) []Route {
	var out []Route
	for _, r := range slices.Concat(m.Routes, m.Otherwise, m.Podman) {
		if r.From == p && r.To == t {
			out = append(out, r)
		}
	}
	return out
}

// optional lists the hops that some network plug-ins lack, or that cannot be read in some clusters.
var optional = []HopKind{HopBridge, HopVXLAN, HopTunnel, HopDNAT, HopSNAT, HopWire}

// Fits reports whether the catalogue has a route from p to t with these hops. For Kubernetes's
// modes it ignores optional hops, because plug-ins differ in them.
func (m Mode) Fits(p Placement, t Target, hops []HopKind) bool {
	for _, r := range m.RoutesTo(p, t) {
		if slices.Equal(r.Hops, hops) || m.Kubernetes &&
			slices.Equal(essential(r.Hops), essential(hops)) {
			return true
		}
	}
	return false
}

func essential(hops []HopKind) (out []HopKind) {
	for _, h := range hops {
		if h == HopNetkit { // instead of the veth pair
			h = HopVeth
		}
		if !slices.Contains(optional, h) {
			out = append(out, h)
		}
	}
	return out
}

// Label returns the mode's name, the target if the mode has several from p, and the tunes:
// "bridge", "publish-nat :addr", "bridge+mtu=9000".
func (m Mode) Label(p Placement, t Target, tunes Tunes) string {
	l := string(m.Name)
	if m.severalFrom(p, t) {
		l += " " + t.Short()
	}
	return tunes.Name(l)
}

// Phrase returns the label in Docker's words: "--network NAME", "-p own IP (NAT)".
func (m Mode) Phrase(p Placement, t Target, tunes Tunes) string {
	l := cmp.Or(m.Short, string(m.Name))
	if t.Outside() {
		l = cmp.Or(m.Out, l)
	}
	if m.severalFrom(p, t) {
		what, how, qualified := strings.Cut(l, " (")
		l = what + " " + t.words()
		if qualified {
			l += " (" + how
		}
	}
	return tunes.Name(l)
}

// severalFrom reports whether the target must be named, because the mode has several usual targets
// from p, or t is an unusual one.
func (m Mode) severalFrom(p Placement, t Target) bool {
	if r, ok := m.Route(p, t); ok && (r.OnRequest() || t.Outside()) {
		return true
	}
	return len(slices.DeleteFunc(m.RoutesInto(p), Route.OnRequest)) > 1
}

// Find returns the mode called n; ok is false if the catalogue lacks it.
func Find(n Name) (m Mode, ok bool) {
	for _, m := range catalogue {
		if m.Name == n {
			return m, true
		}
	}
	return Mode{}, false
}

// ParseName parses a mode's name.
func ParseName(s string) (Name, error) { return suggest.Parse("mode", s, Names()) }

// All returns the modes in display order.
func All() []Mode { return slices.Clone(catalogue) }

// OfLab returns the modes that the lab builds: Docker's, and Kubernetes's that consist of the
// kernel's own parts.
func OfLab() []Mode {
	return slices.DeleteFunc(All(), func(m Mode) bool { return m.Kubernetes && !m.Model })
}

// OfDocker returns the modes that are not Kubernetes's.
func OfDocker() []Mode {
	return slices.DeleteFunc(All(), func(m Mode) bool { return m.Kubernetes })
}

// OfKubernetes returns the modes that a cluster can have: its own, and host and shared.
func OfKubernetes() []Mode {
	return slices.DeleteFunc(All(), func(m Mode) bool {
		return !m.Kubernetes && m.Name != Host && m.Name != Shared
	})
}

// Usual returns the names of the modes compared by default.
func Usual() []Name {
	var out []Name
	for _, m := range catalogue {
		if m.Usual {
			out = append(out, m.Name)
		}
	}
	return out
}

// Names returns all names in display order.
func Names() []Name {
	out := make([]Name, len(catalogue))
	for i, m := range catalogue {
		out[i] = m.Name
	}
	return out
}
