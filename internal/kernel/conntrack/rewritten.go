package conntrack

import "net/netip"

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

// Selects reports whether rules rewrote a connection of r.Proto as r says. Translations and Take list
// such connections.
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
