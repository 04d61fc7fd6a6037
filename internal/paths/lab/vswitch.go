package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/ovs"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// vswitch makes the machine's card a port of an Open vSwitch bridge, as `pipework br1 CONTAINER
// ADDRESS` (at 9ba97f1) and `ovs-docker add-port br1 eth0 CONTAINER` (openvswitch/ovs at d6a632a)
// do. The administrator makes the bridge with the card and the machine's address.
func (s *site) vswitch() error {
	switches := map[*hostMachine]*virtualSwitch{}
	err := s.onLAN(lan{
		foreign: []string{outer.bridge},
		prepare: func(m *hostMachine) (err error) {
			switches[m], err = s.startOVS(m)
			return err
		},
		attach: func(m *hostMachine, at seat) (*container, error) {
			c, err := s.box(m, at.name)
			if err != nil {
				return nil, err
			}
			if err := c.plug(at.veth(), m.ns); err != nil {
				return nil, fmt.Errorf("%s: %w", at.name, err)
			}
			if err := switches[m].Set(switches[m].addPort(c.port)...); err != nil {
				return nil, fmt.Errorf("%s: %w", at.name, err)
			}
			if err := c.address(outer.of(at), none); err != nil {
				return nil, err
			}
			if err := c.alsoSix(outer.of6(at), none); err != nil {
				return nil, err
			}
			return c, s.cardMTU(c)
		},
		kind: mode.HopOVS,
		between: func(m *hostMachine, toServer, toClient []string) path.Hop {
			if len(toClient) == 0 {
				toClient = []string{ovs.Local}
			}
			return s.ovsHop(m, switches[m], toServer, toClient)
		},
	})
	if err != nil || link.HasOVS() {
		return err
	}
	return s.withoutOffloads()
}

type virtualSwitch struct {
	*ovs.Switch
	ports map[string]string
}

func (v *virtualSwitch) addPort(device string) []string {
	n := strconv.Itoa(len(v.ports)) // including the machine's own port
	v.ports[device] = n
	return []string{"add-port", outer.bridge, device, "--", "set", "Interface", device,
		"ofport_request=" + n}
}

func (s *site) startOVS(m *hostMachine) (*virtualSwitch, error) {
	cmd, stderr := marked(self, ovs.Arg)
	sw, err := ovs.Start(cmd, m.ns.Start)
	if err != nil {
		if said := stderr.Err(); said != nil {
			err = fmt.Errorf("%w: %w", err, said)
		}
		return nil, err
	}
	s.path.Undo.Push("stop Open vSwitch on "+m.name, sw.Stop)
	if pid, err := sw.Daemon(); err == nil {
		s.path.Copiers = append(s.path.Copiers, pid)
	}
	v := &virtualSwitch{sw, map[string]string{ovs.Local: ovs.Local}}
	kind, words := "netdev", "userspace (datapath_type=netdev)"
	if link.HasOVS() {
		kind, words = "system", "kernel"
	}
	s.path.Facts["datapath"] = words + ", Open vSwitch " + ovs.Version()
	// Unless the port has a no-op QoS record, ovs-vswitchd removes the card's queueing discipline,
	// which shapes the wire.
	err = sw.Set(slices.Concat(
		[]string{"add-br", outer.bridge, "--", "set", "bridge", outer.bridge,
			"datapath_type=" + kind, "--"}, v.addPort(wireName),
		[]string{"--", "set", "port", wireName, "qos=@keep", "--", "--id=@keep", "create", "qos",
			"type=linux-noop"})...)
	if err != nil {
		return nil, err
	}
	return v, m.ns.Do(func() error { return moveAddress(m) })
}

// withoutOffloads turns off checksum and segmentation offload in the containers and on the machine:
// the userspace datapath does not complete what the kernel leaves to the card.
func (s *site) withoutOffloads() error {
	ends := []spot{}
	for _, c := range s.boxes {
		ends = append(ends, spot{c.ns, c.name})
	}
	if s.path.Spec.From == mode.FromRemote || s.path.Spec.To.Outside() {
		ends = append(ends, spot{s.b.ns, s.b.name})
	}
	var where []string
	for _, e := range ends {
		if err := e.ns.Do(func() error {
			return link.SetOffload(inside, link.TxChecksum, false)
		}); err != nil {
			return err
		}
		where = append(where, e.where)
	}
	if n, m := s.path.Spec.Count(); n > 1 || m > 1 {
		where = []string{"every client and server"}
	}
	s.path.Facts["offloads"] = "checksum and segmentation off at " + strings.Join(where, " and ") +
		": the userspace datapath forwards packets without finishing either"
	return nil
}

func (s *site) ovsHop(m *hostMachine, sw *virtualSwitch, toServer, toClient []string) path.Hop {
	h := path.Hop{Kind: mode.HopOVS, Name: outer.bridge + " ports", Where: m.name,
		Read: func() (sample.Counters, error) {
			ports, err := sw.Ports(outer.bridge)
			if err != nil {
				return sample.Counters{}, err
			}
			sent := func(devices []string) func() (sample.Counters, error) {
				var numbers []string
				for _, d := range devices {
					numbers = append(numbers, sw.ports[d])
				}
				return func() (sample.Counters, error) {
					p, err := ovs.Sent(ports, numbers)
					return sample.Counters{ForwardBytes: p.TxBytes, ForwardPackets: p.TxPackets},
						err
				}
			}
			return local.SentBy(sent(toServer), sent(toClient))()
		}}
	return s.madeOf(h, device{Space: m.ns, Name: outer.bridge, SetMTU: func(mtu int) error {
		return sw.Set("set", "Interface", outer.bridge, "mtu_request="+strconv.Itoa(mtu))
	}})
}

func tryOVS() error {
	for _, p := range ovs.Programs() {
		if _, err := ovs.Find(p); err != nil {
			return &machine.UnsupportedError{Missing: "Open vSwitch is not installed (" + p + ")",
				Remedy: remedy.Install("openvswitch-switch")}
		}
	}
	if link.HasOVS() {
		return nil
	}
	const tun = "/dev/net/tun"
	fd, err := unix.Open(tun, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &machine.UnsupportedError{
			Missing: "the kernel has no Open vSwitch datapath (CONFIG_OPENVSWITCH), and the userspace one needs " + tun,
			Remedy: remedy.Modprobe("openvswitch") + ", or run toll as root, or " +
				remedy.AsRoot("chmod 666 "+tun),
			Err: err,
		}
	}
	return unix.Close(fd)
}
