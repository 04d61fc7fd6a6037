package docker

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/ovs"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// vswitch makes a bridge in the machine's Open vSwitch and uses it as `ovs-docker add-port` and
// pipework do.
func (s *site) vswitch() error {
	var sw ovs.Machines
	version, err := sw.Version()
	if err != nil {
		return err
	}
	l, err := s.addLAN(s.addSwitch)
	if err != nil {
		return err
	}
	ports := map[*box]string{} // OpenFlow numbers, including the machine's own port
	s.attach = func(b *box) error {
		ports[b] = strconv.Itoa(len(ports) + 1)
		err := s.plug(b, l, func() error {
			_, err := sw.Set("add-port", l.bridge, b.port, "--", "set", "Interface", b.port,
				"ofport_request="+ports[b])
			return err
		})
		if err != nil || link.HasOVS() {
			return err
		}
		// The userspace datapath does not compute checksums that the kernel leaves to the card.
		return b.ns.Do(func() error { return link.SetOffload(b.device, link.TxChecksum, false) })
	}
	p := s.path
	s.ownRules()
	p.Facts["datapath"] = "kernel, Open vSwitch " + version
	if !link.HasOVS() {
		p.Facts["datapath"] = "userspace (datapath_type=netdev), Open vSwitch " + version
		p.Facts["offloads"] = "checksum and segmentation off in the containers: the userspace datapath forwards packets without finishing either"
	}
	of := func(boxes []*box) (out []string) {
		for _, b := range boxes {
			out = append(out, ports[b])
		}
		return out
	}
	s.GiveAt(mode.HopOVS, func(recipe.At) []path.Hop {
		clients := of(s.Clients)
		if clients == nil {
			clients = []string{ovs.Local}
		}
		return []path.Hop{s.switchHop(sw, l.bridge, of(s.Servers), clients)}
	})
	return s.onLAN()
}

func (s *site) switchHop(sw ovs.Machines, bridge string, toServer, toClient []string) path.Hop {
	h := path.Hop{Kind: mode.HopOVS, Name: bridge + " ports", Where: thisMachine,
		Read: func() (c sample.Counters, err error) {
			now, err := sw.Ports(bridge)
			if err != nil {
				return c, err
			}
			f, err := ovs.Sent(now, toServer)
			if err != nil {
				return c, err
			}
			b, err := ovs.Sent(now, toClient)
			return sample.Counters{ForwardBytes: f.TxBytes, ForwardPackets: f.TxPackets,
				BackwardBytes: b.TxBytes, BackwardPackets: b.TxPackets}, err
		}}
	return s.tuned.MadeOf(h, local.TunedDevice{
		Space: s.engine.ns, Name: bridge, SetMTU: func(mtu int) error {
			_, err := sw.Set("set", "Interface", bridge, "mtu_request="+strconv.Itoa(mtu))
			return err
		}})
}

func (s *site) addSwitch(name string, end *undo.Stack) error {
	e := s.engine
	if err := e.Journal.Add(dockerapi.Switch, name); err != nil {
		return err
	}
	end.Push("remove bridge "+name+" of Open vSwitch", func() error {
		err := removeSwitch(name)
		if err == nil {
			e.Journal.Gone(dockerapi.Switch, name)
		}
		return err
	})
	kind := "system"
	if !link.HasOVS() {
		kind = "netdev"
	}
	// The mark is quoted because of its punctuation.
	_, err := ovs.Machines{}.Set("add-br", name, "--", "set", "bridge", name, "datapath_type="+kind,
		fmt.Sprintf("external_ids:%q=%q", dockerapi.RunLabel, e.Mark))
	if err != nil {
		return err
	}
	// ovs-vswitchd only logs why it could not make a device, and may run in another network
	// namespace.
	if err := e.ns.Do(func() error { _, err := link.Stats(name); return err }); err != nil {
		why, _ := ovs.Machines{}.Set("get", "Interface", name, "error")
		return &machine.UnsupportedError{
			Missing: "Open vSwitch runs, but made no bridge in this network namespace: it reports " +
				why,
			Remedy: "see the log of ovs-vswitchd; --on lab has an Open vSwitch of its own",
			Err:    err}
	}
	return nil
}

func removeSwitch(name string) error {
	_, err := ovs.Machines{}.Set("--if-exists", "del-br", name)
	return err
}

// tryOVS makes a bridge once, because Open vSwitch does not report what it supports.
func (s *site) tryOVS() error {
	_, err := ovs.Machines{}.Version()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return &machine.UnsupportedError{Missing: "Open vSwitch is not installed",
			Remedy: remedy.Install("openvswitch-switch"), Err: err}
	case err != nil:
		return &machine.UnsupportedError{Missing: "Open vSwitch does not run on this machine",
			Remedy: remedy.Start("openvswitch-switch", "openvswitch", "ovs-vswitchd") +
				"; --on lab has one of its own",
			Err: err}
	}
	return s.addSwitch(deviceName+dockerapi.NewID(), &s.path.Undo)
}

func leftSwitches(dead func(mark string) bool) (names []string, err error) {
	var sw ovs.Machines
	all, err := sw.Set("list-br")
	if err != nil {
		return nil, err
	}
	for _, name := range slices.DeleteFunc(strings.Fields(all), func(n string) bool {
		return !isOurName(n)
	}) {
		mark, err := sw.Set("br-get-external-id", name, dockerapi.RunLabel)
		if err != nil {
			return names, err
		}
		if mark != "" && dead(mark) {
			names = append(names, name)
		}
	}
	return names, nil
}
