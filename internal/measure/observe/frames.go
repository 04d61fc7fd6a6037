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
			f, err := framesOf(name, to.Unmap().Is6())
			if f == nil || out != nil {
				return err
			}
			if out = f; i != 0 {
				out.Off = ""
			}
			return nil
		})
	}
	return out
}

// framesOf returns what has iptables see a bridge's frames, and the commands after which it does not,
// or nil if it does not see them.
func framesOf(bridge string, six bool) (*sample.Frames, error) {
	which := 0
	if six {
		which = 1
	}
	all, err := link.BridgesNF()
	if err != nil {
		return nil, err
	}
	option := link.BridgeNF[which]
	name := "bridge-" + strings.NewReplacer("nf_call_", "nf-call-").Replace(option)
	seen, err := sysctl.Get("net.bridge." + name)
	if err != nil { // br_netfilter is not loaded
		return nil, nil //nolint:nilerr,nilnil // so nothing sees them
	}
	var by, off []string
	if seen == "1" {
		by, off = append(by, name+"=1"), append(off, "sysctl -w net.bridge."+name+"=0")
	}
	if all[bridge][which] {
		by = append(by, option+" 1")
		off = append(off, "ip link set dev "+bridge+" type bridge "+option+" 0")
	}
	if len(off) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	return &sample.Frames{Bridge: bridge, Switch: strings.Join(by, ", "),
		Off: strings.Join(off, " && ")}, nil
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
