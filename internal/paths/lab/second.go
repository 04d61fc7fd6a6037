package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Some programs use a second port and send its number to the other end. So the port must have the
// same number inside and outside of the container, and the path has one server.

func (s *site) ports(server netip.Addr, first uint16) []published {
	out := []published{{port: first, to: netip.AddrPortFrom(server, serverPort)}}
	if s.path.Spec.Second {
		out = append(out, published{port: secondPort,
			to: netip.AddrPortFrom(server, secondPort)})
	}
	return out
}

// portRule returns the hop of the rules for server i's port and for the second port.
func (s *site) portRule(kind mode.HopKind, table, chain, tag string, i int,
	e path.Expect) path.Hop {
	h := s.ruleHop(s.engine, kind, table, chain, numbered(tag, i), e)
	if !s.path.Spec.Second {
		return h
	}
	h.Read = local.Sum(h.Read, s.ruleHop(s.engine, kind, table, chain,
		numbered(tag, i+1), e).Read)
	return h
}
