package conntrack

import (
	"fmt"
	"net/netip"
)

// Rewrite selects connections by how rules rewrote them.
type Rewrite struct {
	Proto string
	To    netip.AddrPort
	Now   netip.AddrPort // the address that answers; To without DNAT
	// the client's address, and the one to which answers go; invalid: any
	From, As netip.Addr
	Source   Source
}

// Source tells how the client's own address was rewritten.
type Source string

const (
	Any     Source = ""
	Kept    Source = "kept"
	Changed Source = "changed"
)

// Rewritten returns the clients of the selected connections, including ended ones that are still in
// the table.
func Rewritten(r Rewrite) ([]netip.AddrPort, error) {
	all, err := list(r.Proto, r.To.Addr().Unmap().Is6(), r.Selects)
	if err != nil {
		return nil, fmt.Errorf("count rewritten connections: %w", err)
	}
	var out []netip.AddrPort
	for _, t := range all {
		out = append(out, t.From)
	}
	return out, nil
}

// Selects reports whether rules rewrote a connection of r.Proto as r says.
func (r Rewrite) Selects(t Translation) bool {
	is := func(a netip.AddrPort, want netip.Addr) bool {
		return !want.IsValid() || a.Addr() == want.Unmap()
	}
	return t.To == plain(r.To) && t.Now == plain(r.Now) && is(t.From, r.From) && is(t.As, r.As) &&
		(r.Source == Any || (t.As.Addr() == t.From.Addr()) == (r.Source == Kept))
}

func at(ip []byte, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
