package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type need int

const (
	needSetup need = iota // network namespaces, and permission to configure them
	needDevices
	needCongestion
	needForwarding
	needNAT
	needSockets
	needProxy
	needBridgeNF // rules see bridged frames
	needIPv6
	needNAT6      // and forwarding of IPv6
	needBridgeNF6 // rules see bridged frames of IPv6
	needWire
	needMacvlan
	needIPvlan
	needNetkit
	needVXLAN
	needESP
	needOVS
	needRPS
	needIdle
	needProcessIO
	needUDPProxy
	needIPVS
	needXPS
	needQueues
	needThreaded
	needBigTCP
	needShortcuts // BPF programs at the root of cgroup v2
	needTCP
	needPasta
	needSlirp
	needKit
	needGvisor
	needRootlessPort
	needHostLoopback
	needPastaAnswers
)

// needsOf returns the needs of a path, the most basic one first.
func (l *Lab) needsOf(s path.Spec) []need {
	out := []need{needSetup, needDevices, needCongestion}
	r := recipes[s.Mode]
	if !r.bare {
		out = append(out, needForwarding, needNAT)
	}
	if l.Wire != (sample.Wire{}) && crossesWire(s.Mode, s.From, s.To) {
		out = append(out, needWire)
	}
	out = append(out, r.needs...)
	if r.more != nil {
		out = append(out, r.more(l, s)...)
	}
	if s.To.Six() {
		out = append(out, needIPv6)
	}
	if recipe.Dual(s) {
		out = append(out, needNAT6)
	}
	for _, t := range s.Tune.List() {
		if n, ok := tuneNeeds[t.Key]; ok {
			out = append(out, n)
		}
	}
	return out
}

func (l *Lab) needsOfNAT(s path.Spec) []need {
	switch {
	case s.From != mode.FromContainer:
		return nil
	case recipe.Dual(s):
		return []need{needBridgeNF6}
	}
	return []need{needBridgeNF}
}

func (l *Lab) needsOfPublish(s path.Spec) []need {
	switch {
	case l.ProxyPath == noProxy && s.To.Six():
		return []need{needProxy}
	case l.ProxyPath == noProxy:
		return l.needsOfNAT(s)
	case s.UDP && !recipe.Proxied(s): // the proxy is a guard
		return []need{needProcessIO, needProxy}
	}
	return l.needsOfProxy(s)
}

func (l *Lab) needsOfProxy(s path.Spec) []need {
	switch {
	case s.UDP && s.From == mode.FromContainer:
		return []need{needProcessIO, needProxy, needUDPProxy}
	case s.UDP:
		return []need{needProcessIO, needProxy}
	}
	return []need{needSockets, needProxy}
}

// needsOfRelay returns what toll needs to count the load that a process relays.
func (l *Lab) needsOfRelay(s path.Spec) []need {
	if s.UDP {
		return []need{needProcessIO}
	}
	return []need{needSockets}
}

func (l *Lab) needsOfRootlessPublish(s path.Spec) []need {
	if s.To.Outside() { // the way out bypasses docker-proxy
		return l.needsOfRelay(s)
	}
	return l.needsOfProxy(s)
}

func (l *Lab) needsOfPasta(s path.Spec) []need {
	servers, _ := s.Count()
	if s.UDP && s.From == mode.FromHost && (s.To.Over4() == mode.ToAddress || servers > 1) {
		return append(l.needsOfRelay(s), needPastaAnswers)
	}
	return l.needsOfRelay(s)
}

func (l *Lab) needsOfSlirp(s path.Spec) []need {
	if s.UDP && s.To == mode.ToLoopback { // rootless-publish-tap has the same limit
		return []need{needHostLoopback}
	}
	return l.needsOfRelay(s)
}

func (l *Lab) needsOfFast(s path.Spec) []need {
	if s.UDP {
		return []need{needTCP}
	}
	return []need{needSockets, needProxy, needShortcuts}
}

func (l *Lab) need(n need) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err, ok := l.tried[n]; ok {
		return err
	}
	if l.tried == nil {
		l.tried = map[need]error{}
	}
	l.tried[n] = l.try(n)
	return l.tried[n]
}

// try tries a need in one namespace, which is kept until Close: while the kernel removes a
// namespace, making another one has to wait.
func (l *Lab) try(n need) error {
	if l.trial == nil {
		ns, err := netns.New()
		if err != nil {
			return explainNamespace(err)
		}
		l.trial = ns
	}
	return l.trial.Do(l.trials()[n])
}

func (l *Lab) trials() map[need]func() error {
	return map[need]func() error{
		needSetup:      func() error { return link.Up("lo") },
		needDevices:    tryDevices,
		needCongestion: l.setCongestion,
		needForwarding: tryForwarding,
		needNAT:        func() error { return tryNAT(nft.IPv4) },
		needSockets:    trySockets,
		needProxy:      l.tryProxy,
		needBridgeNF:   func() error { return tryBridgeNF(bridgeNF) },
		needIPv6:       tryIPv6,
		needNAT6:       tryNAT6,
		needBridgeNF6:  func() error { return tryBridgeNF(bridgeNF6) },
		needWire:       l.tryWire,
		needMacvlan: func() error {
			return trySubInterface("macvlan", "CONFIG_MACVLAN", func(si link.SubInterface) error {
				return link.AddMacvlan(si, "bridge")
			})
		},
		needIPvlan: func() error {
			return trySubInterface("ipvlan", "CONFIG_IPVLAN", func(si link.SubInterface) error {
				return link.AddIPvlan(si, "l2")
			})
		},
		needNetkit: func() error {
			return local.MissingDevice(link.AddNetkit("try-netkit", "try-netkit2", unix.Gettid()),
				"netkit", "CONFIG_NETKIT")
		},
		needVXLAN:        tryVXLAN,
		needESP:          tryESP,
		needOVS:          tryOVS,
		needRPS:          func() error { return local.TryTune(mode.RPS) },
		needIdle:         func() error { return local.TryTune(mode.Idle) },
		needProcessIO:    func() error { return local.CheckIO(os.Getpid(), "run toll as root") },
		needUDPProxy:     l.tryUDPProxy,
		needIPVS:         tryIPVS,
		needXPS:          func() error { return local.TryTune(mode.XPS) },
		needQueues:       l.tryQueues,
		needThreaded:     func() error { return local.TryTune(mode.Threaded) },
		needBigTCP:       func() error { return local.TryTune(mode.BigTCP) },
		needShortcuts:    tryShortcuts,
		needTCP:          func() error { return shortcut.ErrUDP },
		needPasta:        func() error { return tryTap(rootless.Pasta) },
		needSlirp:        func() error { return tryTap(rootless.Slirp4netns) },
		needKit:          tryKit,
		needGvisor:       tryGvisor,
		needRootlessPort: tryRootlessPort,
		needPastaAnswers: tryPastaAnswers,
		needHostLoopback: func() error { return rootless.ErrHostLoopback },
	}
}

// MayBuild reports whether this process may set up network namespaces, as root or inside Enter's
// user namespace.
func (l *Lab) MayBuild() bool { return l.need(needSetup) == nil }

// Close removes the trial namespace and forgets the results. Paths stay.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = nil
	if l.trial == nil {
		return nil
	}
	ns := l.trial
	l.trial = nil
	return ns.Close()
}

func tryDevices() error {
	if err := link.AddVeth("try-veth", "try-peer", unix.Gettid()); err != nil {
		return local.MissingDevice(err, "veth", "CONFIG_VETH")
	}
	if err := link.AddBridge("try-bridge"); err != nil {
		return local.MissingDevice(err, "bridge", "CONFIG_BRIDGE")
	}
	return nil
}

// trySubInterface uses a veth pair of its own, because a card can have sub-interfaces of only one
// kind.
func trySubInterface(kind, option string, add func(link.SubInterface) error) error {
	parent := "try-" + kind
	if err := link.AddVeth(parent, parent+"-p", unix.Gettid()); err != nil {
		return local.MissingDevice(err, "veth", "CONFIG_VETH")
	}
	return local.MissingDevice(add(link.SubInterface{
		Name: parent + "-s", Parent: parent, TID: unix.Gettid()}), kind, option)
}

func tryTap(program string) error {
	if _, err := rootless.Find(program); err != nil {
		return err
	}
	return rootless.CheckTun()
}

func trySockets() error {
	err := sock.Supported()
	if err == nil {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: "reading the proxy's bytes needs sock_diag (CONFIG_INET_TCP_DIAG)",
		Remedy:  remedy.Modprobe("tcp_diag"),
		Err:     err,
	}
}

func tryShortcuts() error {
	t, err := shortcut.Load()
	if err != nil {
		return err
	}
	return t.Close()
}

func tryForwarding() error {
	return settable(ipForward)
}

func settable(key string) error {
	err := sysctl.Set(key, "1")
	if err == nil {
		return nil
	}
	out := &machine.UnsupportedError{Missing: key +
		" cannot be set: /proc/sys is read-only here, as in a container without privileges",
		Remedy: machine.Machine{}.Uncontained(false), Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		out.Missing, out.Remedy = key+" is not in /proc/sys: /proc is hidden or not mounted here",
			"run toll outside the container, or "+remedy.AsRoot("mount -t proc proc /proc")
	}
	return out
}

func tryNAT(f nft.Family) error {
	err := nft.Supported(f)
	switch {
	case err == nil:
		return nil
	case !nft.Unsupported(err):
		return fmt.Errorf("try nftables: %w", err)
	}
	if f == nft.IPv6 {
		return &machine.UnsupportedError{
			Missing: "the kernel lacks nf_tables with NAT of IPv6 (CONFIG_NF_TABLES_IPV6, CONFIG_NFT_FIB_IPV6)",
			Remedy:  remedy.ModprobeOr("nft_chain_nat", "nft_fib_ipv6"),
			Err:     err,
		}
	}
	return &machine.UnsupportedError{
		Missing: "the kernel lacks nf_tables with NAT (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_MASQ, CONFIG_NFT_FIB_IPV4, CONFIG_NFT_CT)",
		Remedy:  remedy.ModprobeOr("nf_tables", "nft_chain_nat", "nft_masq", "nft_fib_ipv4", "nft_ct"),
		Err:     err,
	}
}

func tryBridgeNF(key string) error {
	v, err := sysctl.Get(key)
	if err == nil && v == "1" {
		return nil
	}
	return &machine.UnsupportedError{
		Missing: "rules only see frames between containers of one network with " + key +
			"=1 (CONFIG_BRIDGE_NETFILTER)",
		Remedy: remedy.Modprobe("br_netfilter"),
		Err:    err,
	}
}

func tryNAT6() error {
	if err := settable(ipForward6); err != nil {
		return err
	}
	return tryNAT(nft.IPv6)
}

func tryIPv6() error {
	const key = "net.ipv6.conf.lo.disable_ipv6"
	v, err := sysctl.Get(key)
	if err == nil && v == "0" {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &machine.UnsupportedError{Missing: "the kernel has no IPv6",
			Remedy: "boot without ipv6.disable=1"}
	}
	return &machine.UnsupportedError{Missing: "IPv6 is off (" + key + " is not 0)",
		Remedy: "boot without ipv6.disable_ipv6=1", Err: err}
}
