package link

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Cards returns the network cards that carry a device: the device itself or those below it, none
// for a veth. crossed names the devices that all of its packets cross: a bond counts as one, and
// several cards below a bridge do not count. Unreported values are left out.
func Cards(name string) (all []sample.Card, crossed []string, err error) {
	links, err := listLinks()
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == name })
	if at < 0 {
		return nil, nil, fmt.Errorf("find link %s: %w", name, unix.ENODEV)
	}
	err = withKernelFiles(links[at], func(k kernelFiles) error {
		found := k.below(name, func(name string) bool {
			return slices.ContainsFunc(links, func(l netlink.Link) bool {
				return l.Attrs().Name == name && joint(l.Type())
			})
		})
		for _, f := range found {
			if i := slices.IndexFunc(links, func(l netlink.Link) bool {
				return l.Attrs().Name == f.name
			}); i >= 0 {
				all = append(all, k.card(links[i], f))
			}
		}
		crossed = decisive(all)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the network cards of %s: %w", name, err)
	}
	return all, crossed, nil
}

func decisive(all []sample.Card) []string {
	for _, c := range all {
		if !c.Device {
			return []string{c.Name}
		}
	}
	if len(all) == 1 {
		return []string{all[0].Name}
	}
	return nil
}

func joint(kind string) bool { return kind == "bond" || kind == "team" }

type kernelFiles struct {
	net  string
	proc string
}

// withKernelFiles calls f with the directories of sysfs and procfs. sysfs is used only if it shows
// this namespace.
func withKernelFiles(l netlink.Link, f func(kernelFiles) error) error {
	root, err := mountSysfs()
	if err == nil {
		k := kernelFiles{fmt.Sprintf("/proc/self/fd/%d/class/net", root), "/proc"}
		return errors.Join(f(k), unix.Close(root))
	}
	k := kernelFiles{"/sys/class/net", "/proc"}
	if k.text(l.Attrs().Name, "ifindex") != strconv.Itoa(l.Attrs().Index) ||
		!strings.EqualFold(k.text(l.Attrs().Name, "address"), l.Attrs().HardwareAddr.String()) {
		return nil
	}
	return f(k)
}

func (k kernelFiles) text(device string, file ...string) string {
	return line(filepath.Join(append([]string{k.net, device}, file...)...))
}

func line(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// inBus returns the path of the card's device on its bus. It ends in a symbolic link, which the
// kernel resolves before a following "..", unlike path.Join.
func (k kernelFiles) inBus(device string) string { return k.net + "/" + device + "/device/" }

func (k kernelFiles) below(name string, joins func(name string) bool) []foundCard {
	const deepest = 4
	type level struct {
		name, under string
		depth       int
	}
	var out []foundCard
	seen := map[string]bool{}
	for next := []level{{name: name}}; len(next) > 0; next = next[1:] {
		at := next[0]
		if seen[at.name] || at.depth > deepest {
			continue
		}
		seen[at.name] = true
		if _, err := os.Stat(k.inBus(at.name)); err == nil {
			out = append(out, foundCard{at.name, at.under, true})
			continue
		}
		entries, err := os.ReadDir(filepath.Join(k.net, at.name))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if lower, ok := strings.CutPrefix(e.Name(), "lower_"); ok {
				next = append(next, level{lower, at.name, at.depth + 1})
			}
		}
		if joins(at.name) {
			out = append(out, foundCard{at.name, at.under, false})
		}
	}
	return out
}

type foundCard struct {
	name, under string
	device      bool
}

func (k kernelFiles) card(l netlink.Link, f foundCard) sample.Card {
	a := l.Attrs()
	c := sample.Card{Name: f.name, Under: f.under, Device: f.device, MTU: a.MTU,
		Sizes: &sample.OffloadSizes{GSO: a.GSOMaxSize, GRO: a.GROMaxSize, GSO4: a.GSOIPv4MaxSize,
			GRO4: a.GROIPv4MaxSize}}
	if *c.Sizes == (sample.OffloadSizes{}) {
		c.Sizes = nil
	}
	_ = withEthtool(func(e *ethtool.Ethtool) error {
		if d, err := e.DriverInfo(f.name); err == nil {
			c.Driver, c.Version = known(d.Driver), known(d.Version)
			c.Firmware, c.Bus = known(d.FwVersion), known(d.BusInfo)
		}
		if all, err := features(f.name); err == nil {
			c.Offloads = cardOffloads(all)
		}
		c.Queues = queuesOf(e, f.name)
		return nil
	})
	m, err := linkModes(f.name)
	if err != nil {
		m = k.modes(f.name)
	}
	c.Speed, c.MaxSpeed, c.PartnerSpeed = m.speed, m.most, m.partner
	c.Duplex, c.Autoneg = m.duplex, m.autoneg
	if f.device {
		c.NUMA = k.numa(f.name)
		c.Interrupts = k.interrupts(f.name)
	}
	c.RPS, c.XPS = k.steered(f.name, RPS), k.steered(f.name, XPS)
	return c
}

func known(s string) string {
	if s == "N/A" || s == "n/a" || strings.Trim(s, ".0 ") == "" {
		return ""
	}
	return s
}

func cardOffloads(all map[string]bool) map[string]bool {
	short := maps.Clone(offloads)
	short["lro"], short["hw-gro"] = "rx-lro", "rx-gro-hw"
	short["rx-checksum"], short["tx-checksum-ipv4"] = "rx-checksum", "tx-checksum-ipv4"
	return abbreviated(all, short)
}

func queuesOf(e *ethtool.Ethtool, name string) *sample.CardQueues {
	var q sample.CardQueues
	if c, err := e.GetChannels(name); err == nil {
		q.Combined, q.Receive, q.Send = int(c.CombinedCount), int(c.RxCount), int(c.TxCount)
		q.MostCombined, q.MostReceive, q.MostSend = int(c.MaxCombined), int(c.MaxRx), int(c.MaxTx)
	}
	if r, err := e.GetRing(name); err == nil {
		q.ReceiveRing, q.SendRing = int(r.RxPending), int(r.TxPending)
		q.MostRxRing, q.MostTxRing = int(r.RxMaxPending), int(r.TxMaxPending)
	}
	if q == (sample.CardQueues{}) {
		return nil
	}
	return &q
}

// A virtio card has the files one level up.
var parents = []string{"", "../"}

func (k kernelFiles) numa(name string) *int {
	for _, up := range parents {
		if n, err := strconv.Atoi(line(k.inBus(name) + up + "numa_node")); err == nil && n >= 0 {
			return &n
		}
	}
	return nil
}

func (k kernelFiles) steered(name string, s Steering) map[string]string {
	dir := filepath.Join(k.net, name, "queues")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out map[string]string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), s.queues) {
			continue
		}
		if mask := line(filepath.Join(dir, e.Name(), s.file)); strings.Trim(mask, "0,") != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[e.Name()] = mask
		}
	}
	return out
}
