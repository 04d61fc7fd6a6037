package lab

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (d daemon) dport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPDport(number)
	}
	return nft.TCPDport(number)
}

func (d daemon) sport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPSport(number)
	}
	return nft.TCPSport(number)
}

// firstPktinfo is the Docker Engine whose docker-proxy first answers UDP from the dialled address
// (moby/moby#48571). Earlier ones answer a container on the machine from the bridge's address,
// which the client's socket does not accept.
const firstPktinfo = 28

var majorVersion = regexp.MustCompile(` (\d+)\.`)

func (l *Lab) tryUDPProxy() error {
	file, name := l.findProxy()
	if file == "" {
		return nil
	}
	if m := majorVersion.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= firstPktinfo {
			return nil
		}
	}
	return &machine.UnsupportedError{
		Missing: fmt.Sprintf(
			"%s (%s) does not answer a container's datagrams from the dialled address, as no docker-proxy before Docker Engine %d does", name, file, firstPktinfo),
		Remedy: "--proxy own, or --proxy with the docker-proxy of a later Docker Engine",
	}
}

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
