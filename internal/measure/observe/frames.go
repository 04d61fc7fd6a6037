package observe

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// frames returns the bridge from port to port of which requests go, without NAT, and whose frames
// iptables sees, or nil.
func (y *Way) frames() *sample.Frames {
	for _, h := range y.r.hops {
		if f := y.w.frames(h.space, h.plain); f != nil {
			return f
		}
	}
	return nil
}

// frames returns the bridge from port to port of which packets go from a namespace to another one's
// address, and whose frames iptables sees, or nil.
func (w *Watch) frames(space int, to netip.Addr) (out *sample.Frames) {
	var own, its net.HardwareAddr
	if !to.IsValid() || w.spaces[space].Visit(func() (err error) {
		own, its, err = link.Adjacent(to.Unmap())
		return err
	}) != nil || own == nil {
		return nil
	}
	for i, s := range w.spaces {
		_ = s.Visit(func() error {
			name, err := link.BridgeBetween(own, its)
			if err != nil || name == "" {
				return err
			}
			off, err := framesOff(name, to.Unmap().Is6())
			if err == nil && off != "" && out == nil {
				if out = (&sample.Frames{Bridge: name}); i == 0 {
					out.Off = off
				}
			}
			return err
		})
	}
	return out
}

// framesOff returns the commands after which iptables does not see a bridge's frames, or "" if it does
// not see them.
func framesOff(bridge string, six bool) (off string, err error) {
	which := 0
	if six {
		which = 1
	}
	all, err := link.BridgesNF()
	if err != nil {
		return "", err
	}
	option := link.BridgeNF[which]
	key := "net.bridge.bridge-" + strings.NewReplacer("nf_call_", "nf-call-").Replace(option)
	seen, err := sysctl.Get(key)
	if err != nil { // br_netfilter is not loaded
		return "", nil //nolint:nilerr // so nothing sees them
	}
	var say []string
	if seen == "1" {
		say = append(say, "sysctl -w "+key+"=0")
	}
	if all[bridge][which] {
		say = append(say, "ip link set dev "+bridge+" type bridge "+option+" 0")
	}
	return strings.Join(say, " && "), nil
}

// frames returns the bridge of one of the clients whose requests were seen, as Way.Frames does.
func (s *serving) frames() *sample.Frames {
	const most = 32 // clients
	if s.udp {
		return nil
	}
	translated := s.translated()
	looked := map[netip.Addr]bool{}
	for _, c := range s.all.Clients() {
		if looked[c.Addr()] || slices.Contains(translated, c) || len(looked) == most {
			continue
		}
		looked[c.Addr()] = true
		if f := s.Watch.frames(s.at.space, c.Addr()); f != nil {
			return f
		}
	}
	return nil
}

// translated returns the clients' ends of the server's connections that dialled another address.
func (s *serving) translated() (out []netip.AddrPort) {
	to := s.addresses()
	for _, space := range s.spaces {
		_ = space.Visit(func() error {
			if use, err := conntrack.Read(); err != nil || use.Entries == 0 {
				return err
			}
			_, err := conntrack.Translations("tcp", func(t conntrack.Translation) bool {
				if t.To != t.Now && slices.Contains(to, t.Now) {
					out = append(out, t.As)
				}
				return false
			})
			return err
		})
	}
	return out
}
