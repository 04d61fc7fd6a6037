package replica

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

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
		u := Unknown{What: "IPVS service of mark 0x" + strings.TrimLeft(name, "0")}
		if kind != "FWM" {
			at, ok := serviceAt(name)
			if u.What = fmt.Sprintf("IPVS service %s/%s", strings.ToLower(kind), at); !ok {
				u.What = "IPVS service " + name
			}
			if kind == "TCP" && at.Port() == ftp && strings.Contains(rest, " persistent ") {
				at = netip.AddrPortFrom(at.Addr(), 0) // it also takes data connections
			}
			if ok && !refuses {
				u.At = at
			}
		}
		out = append(out, u)
	}
	return few(out)
}

// few returns one Unknown for all those that are not limited to an address.
func few(all []Unknown) (out []Unknown) {
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
	at    map[netip.AddrPort][]string
	ports map[uint16][]string // 0: of any port
	all   []string
	// moves means that rules may change where packets go.
	moves bool
}

func (s *services) add(u Unknown) {
	if s.at == nil {
		s.at, s.ports = map[netip.AddrPort][]string{}, map[uint16][]string{}
	}
	s.at[u.At] = append(s.at[u.At], u.What)
	s.ports[u.At.Port()] = append(s.ports[u.At.Port()], u.What)
	s.all = append(s.all, u.What)
}

// servicesMet describes the services of a namespace that a connection's packets may have met: those
// at addresses to which they went and, if they may have gone to others, the number of those. passed
// has the sockets that they reached.
func (s *Session) servicesMet(space int, passed []*Socket, d Dial, a Answer) []string {
	of := &s.services[space]
	if len(of.all) == 0 {
		return nil
	}
	out := of.named(passed, d, a)
	perhaps := slices.DeleteFunc(s.perhapsMet(space, passed, a), func(text string) bool {
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
			out = append(out, s.at[to[i]]...)
			if to[i].Port() > 0 {
				out = append(out, s.at[netip.AddrPortFrom(to[i].Addr(), 0)]...)
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
func (s *Session) perhapsMet(space int, passed []*Socket, a Answer) (out []string) {
	of := &s.services[space]
	moves := of.moves || len(s.ran) > 0
	if len(a.Steps) == 0 && (moves || s.relays(space, a)) &&
		slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Got != Connected }) {
		return slices.Clone(of.all)
	}
	if !moves || len(a.Steps) > 0 && space == 0 { // which have what its rules did
		return nil
	}
	for _, x := range passed {
		if x.Space == space && x.Addr.Addr().IsUnspecified() {
			out = slices.Concat(out, of.ports[x.Addr.Port()], of.ports[0])
		}
	}
	return out
}

// Services lists the addresses of IPVS's services in the machine's own namespace, of a port or, if
// port is 0, of all.
func (m *Machine) Services(port uint16) (out []string) {
	if len(m.Spaces) == 0 {
		return nil
	}
	for _, u := range m.Spaces[0].Unknown {
		if u.At.IsValid() && (port == 0 || u.At.Port() == 0 || u.At.Port() == port) {
			out = append(out, u.At.String())
		}
	}
	return out
}

// redirects reports whether rules of the namespace may change packets' destinations.
func (s *Space) redirects() bool {
	if s.mentions(slices.Concat(xtables.Redirecting, []string{"redir\x00"})...) {
		return true
	}
	const dnat = "\x08\x00\x01\x00\x00\x00\x00\x01" // NFTA_NAT_TYPE: NFT_NAT_DNAT
	return slices.ContainsFunc(s.Nft.Messages, func(m raw.Message) bool {
		return bytes.Contains(m.Data, []byte("nat\x00")) && bytes.Contains(m.Data, []byte(dnat))
	})
}
