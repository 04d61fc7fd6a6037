package replica

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

const service = "IPVS service"

// ipvs returns the services in IPVS's table. Those of an address affect only packets to it, unless
// IPVS refuses what comes from their servers outside its connections.
func ipvs(table []byte, refuses bool) (out []Unknown) {
	const ftp = 21
	for line := range strings.Lines(string(table)) {
		kind, rest, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"TCP", "UDP", "SCTP", "FWM"}, kind) {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		u := Unknown{What: service + " of mark 0x" + strings.TrimLeft(name, "0")}
		if kind != "FWM" {
			at, ok := serviceAt(name)
			if u.What = fmt.Sprintf("%s %s/%s", service, strings.ToLower(kind), at); !ok {
				u.What = service + " " + name
			}
			u.Proto = strings.ToLower(kind)
			if kind == "TCP" && at.Port() == ftp && strings.Contains(rest, " persistent ") {
				at = netip.AddrPortFrom(at.Addr(), 0) // it also takes data connections
			}
			if ok && !refuses {
				u.At = at
			} else {
				u.Proto = ""
			}
		}
		out = append(out, u)
	}
	return merged(out)
}

// merged returns one Unknown for all those that are not limited to an address.
func merged(all []Unknown) (out []Unknown) {
	var everywhere []Unknown
	for _, u := range all {
		if u.At.IsValid() {
			out = append(out, u)
		} else {
			everywhere = append(everywhere, u)
		}
	}
	if n := len(everywhere); n > 1 {
		everywhere = []Unknown{{What: fmt.Sprintf("IPVS with %d services", n)}}
	}
	return append(out, everywhere...)
}

// serviceAt parses an address in IPVS's table, such as C000020B:1F90 or [2001:0db8:…]:1F90.
func serviceAt(text string) (at netip.AddrPort, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return at, false
	}
	port, err := strconv.ParseUint(text[i+1:], 16, 16)
	if err != nil {
		return at, false
	}
	if six, ok := strings.CutPrefix(text[:i], "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(six, "]"))
		return netip.AddrPortFrom(a, uint16(port)), err == nil
	}
	b, err := hex.DecodeString(text[:i])
	a, whole := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a, uint16(port)), err == nil && whole
}

// services has the descriptions of the parts of a namespace that are limited to addresses.
type services struct {
	at    map[reached][]string
	ports map[reached][]string // without address; port 0: of any port
	all   map[string][]string  // by protocol
	// moves means that rules may change where packets go.
	moves bool
}

// reached is where packets of a protocol go.
type reached struct {
	proto string
	netip.AddrPort
}

func (s *services) add(u Unknown) {
	if s.at == nil {
		s.at, s.ports = map[reached][]string{}, map[reached][]string{}
		s.all = map[string][]string{}
	}
	protos := []string{u.Proto}
	if u.Proto == "" {
		protos = []string{"tcp", "udp"}
	}
	for _, proto := range protos {
		to := reached{proto, u.At}
		s.at[to] = append(s.at[to], u.What)
		s.ports[to.any()] = append(s.ports[to.any()], u.What)
		s.all[proto] = append(s.all[proto], u.What)
	}
}

// any returns the port at no address.
func (r reached) any() reached {
	return reached{r.proto, netip.AddrPortFrom(netip.Addr{}, r.Port())}
}

// anyPort returns the address with port 0.
func (r reached) anyPort() reached {
	return reached{r.proto, netip.AddrPortFrom(r.Addr(), 0)}
}

// servicesMet describes the services of a namespace that a connection's packets may have met: those
// at addresses to which they went and, if they may have gone to others, the number of those. passed
// has the sockets that they reached.
func (s *Session) servicesMet(space int, passed []*Socket, d Dial, a Answer) []string {
	of := &s.services[space]
	if len(of.all[d.Proto]) == 0 {
		return nil
	}
	out := of.named(passed, d, a)
	perhaps := slices.DeleteFunc(s.perhapsMet(space, passed, d, a), func(text string) bool {
		return slices.Contains(out, text)
	})
	if n := len(perhaps); n > 1 {
		perhaps = []string{fmt.Sprintf("one of %d services of IPVS", n)}
	}
	return append(out, perhaps...)
}

// named describes the services at addresses to which packets of a connection went.
func (s *services) named(passed []*Socket, d Dial, a Answer) (out []string) {
	to := []netip.AddrPort{d.To}
	if a.Lost != nil {
		to = append(to, a.Lost.Dst)
	}
	for _, step := range a.Steps {
		to = append(to, step.Dst)
	}
	for _, x := range passed {
		to = append(to, x.Relay, x.Addr)
	}
	for i := range to {
		if to[i] = unmapped(to[i]); !slices.Contains(to[:i], to[i]) {
			at := reached{d.Proto, to[i]}
			if out = append(out, s.at[at]...); at.Port() > 0 {
				out = append(out, s.at[at.anyPort()]...)
			}
		}
	}
	return out
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// perhapsMet describes the services of a namespace to which packets of a connection may have gone
// although no step shows it.
func (s *Session) perhapsMet(space int, passed []*Socket, d Dial, a Answer) (out []string) {
	of := &s.services[space]
	moves := of.moves || len(s.ran) > 0
	if len(a.Steps) == 0 && (moves || s.relays(space, a)) &&
		slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Got != Connected }) {
		return slices.Clone(of.all[d.Proto])
	}
	if !moves || len(a.Steps) > 0 && space == 0 { // steps have what rules of namespace 0 did
		return nil
	}
	for _, x := range passed {
		if x.Space == space && x.Addr.Addr().IsUnspecified() {
			at := reached{d.Proto, x.Addr}.any()
			out = slices.Concat(out, of.ports[at], of.ports[at.anyPort()])
		}
	}
	return out
}

// Services names IPVS's services in the machine's own namespace, such as "tcp/10.96.0.1:443": those
// of a protocol, "" for any, and of a port, 0 for any. Those that are not limited to addresses may
// be of all.
func (m *Machine) Services(proto string, port uint16) (out []string) {
	if len(m.Spaces) == 0 {
		return nil
	}
	for _, u := range m.Spaces[0].Unknown {
		name, is := strings.CutPrefix(u.What, "IPVS ")
		if is && (!u.At.IsValid() || (proto == "" || u.Proto == "" || u.Proto == proto) &&
			(port == 0 || u.At.Port() == 0 || u.At.Port() == port)) {
			out = append(out, strings.TrimPrefix(strings.TrimPrefix(name, "service "), "with "))
		}
	}
	return out
}

// Redirects reports whether rules of the namespace may change the destinations of a protocol's
// packets: "tcp", "udp", or "" for any.
func (s *Space) Redirects(proto string) bool {
	return s.Nft.Redirects(proto) || slices.ContainsFunc(s.Legacy, func(t xtables.Saved) bool {
		return t.Redirects(proto)
	})
}
