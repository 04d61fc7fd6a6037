package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xfrm"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// Inspected is a namespace of a path.
type Inspected struct {
	Space
	Where string
	// Devices names the path's devices; nil: the whole namespace belongs to the path.
	Devices []string
	// To lists the destinations of the path's packets, on a machine with other traffic: of the
	// devices' routes only those to them belong to the path, and no addresses do. Empty: all routes
	// and addresses of the devices do.
	To []netip.Addr
	// PID is the PID of a process in the same control group as the place's processes; 0: they are
	// in the caller's.
	PID int
	// Rules returns the path's packet filter rules in a shared namespace. May be nil.
	Rules func() ([]path.Setting, error)

	watch *link.Watch // may be nil
}

// deciding lists sysctls that affect how a namespace sends and forwards traffic. Inspect skips
// those that the kernel lacks.
var deciding = []string{
	"net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.dev_weight",
	"net.core.netdev_budget",
	"net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.gro_normal_batch",
	"net.core.high_order_alloc_disable",
	"net.core.rmem_default", "net.core.rmem_max", "net.core.rps_sock_flow_entries",
	"net.core.somaxconn", "net.core.wmem_default",
	"net.core.wmem_max",
	"net.ipv4.ip_early_demux", "net.ipv4.ip_forward", "net.ipv4.ip_local_port_range",
	"net.ipv4.tcp_adv_win_scale",
	"net.ipv4.tcp_autocorking", "net.ipv4.tcp_base_mss", "net.ipv4.tcp_comp_sack_delay_ns",
	"net.ipv4.tcp_congestion_control",
	"net.ipv4.tcp_early_demux", "net.ipv4.tcp_ecn", "net.ipv4.tcp_limit_output_bytes",
	"net.ipv4.tcp_max_syn_backlog",
	"net.ipv4.tcp_mem", "net.ipv4.tcp_min_rtt_wlen", "net.ipv4.tcp_min_tso_segs",
	"net.ipv4.tcp_moderate_rcvbuf",
	"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_pacing_ca_ratio",
	"net.ipv4.tcp_pacing_ss_ratio",
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_timestamps", "net.ipv4.tcp_tso_rtt_log", "net.ipv4.tcp_tso_win_divisor",
	"net.ipv4.tcp_tw_reuse",
	"net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem", "net.ipv4.udp_mem", "net.ipv4.udp_rmem_min",
	"net.ipv4.udp_wmem_min",
	"net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.all.forwarding",
}

// bridging lists further sysctls, for namespaces with a bridge if the module is loaded.
var bridging = []string{"net.bridge.bridge-nf-call-arptables",
	"net.bridge.bridge-nf-call-ip6tables", "net.bridge.bridge-nf-call-iptables"}

// Inspect reads the settings of a path's namespaces, in their order. It leaves out what the kernel
// changes by itself: counters, neighbours, forwarding entries, IPv6 addresses of devices, carriers,
// connection tracking tables.
func Inspect(spots []Inspected) (out []path.Setting, err error) {
	for _, at := range spots {
		err := at.Do(func() error {
			all, err := at.inspect()
			out = append(out, all...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("inspect %s: %w", at.Where, err)
		}
	}
	more, err := ofMachine(spots)
	return append(out, more...), err
}

// ofMachine reads the BPF programs that do not belong to a network namespace.
func ofMachine(spots []Inspected) (out []path.Setting, err error) {
	groups := map[int]bool{}
	for i, at := range spots {
		if i == 0 {
			all, err := bpf.Links()
			out, err = programs(out, at.Where, "BPF links of the machine", all, err)
			if err != nil {
				return nil, err
			}
		}
		if groups[at.PID] {
			continue
		}
		groups[at.PID] = true
		all, err := bpf.OfCgroup(at.PID)
		out, err = programs(out, at.Where, "BPF programs of its control group", all, err)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func programs(all []path.Setting, where, what, value string, err error) ([]path.Setting, error) {
	if errors.Is(err, bpf.ErrUnreadable) {
		value, err = bpf.ErrUnreadable.Error(), nil
	}
	return append(all, path.Setting{Where: where, What: what, Value: value}), err
}

// watch makes Inspect report also changes that were undone. The watches end with the path.
func watch(p *path.Path, spots []Inspected) error {
	for i := range spots {
		at := &spots[i]
		if at.idle() {
			continue
		}
		err := at.Do(func() (err error) { at.watch, err = link.NewWatch(); return err })
		if err != nil {
			return fmt.Errorf("inspect %s: %w", at.Where, err)
		}
		p.Undo.Push("end the watch of "+at.Where, at.watch.Close)
	}
	return nil
}

func (at Inspected) idle() bool { return at.Devices != nil && len(at.Devices) == 0 }

// Guard sets the path's Inspect. It returns an error if, because of a setting, packets may already
// bypass the path's hops.
func Guard(p *path.Path, spots []Inspected) error {
	spots = slices.Clone(spots)
	if err := watch(p, spots); err != nil {
		return err
	}
	p.Inspect = func() ([]path.Setting, error) { return Inspect(spots) }
	all, err := p.Inspect()
	if err != nil {
		return err
	}
	return path.Undiverted(all)
}

func (at Inspected) inspect() ([]path.Setting, error) {
	if at.idle() {
		return nil, nil
	}
	devices, err := link.Inspect(at.Devices...)
	if err != nil {
		return nil, err
	}
	var out []path.Setting
	for _, d := range devices {
		out = append(out, path.Setting{Where: at.Where, Of: d.Name, Value: d.Kind})
		for _, s := range d.Settings {
			if len(at.To) > 0 && (s.What == link.Addresses || s.What == link.Addresses6) {
				continue
			}
			out = append(out, path.Setting{Where: at.Where, Of: d.Name, What: s.What,
				Value: s.Value, Diverts: s.Diverts})
		}
	}
	for _, read := range []func([]link.Inspected) ([]path.Setting, error){at.sysctls, at.routes,
		at.filters, at.ipsec, at.changes} {
		more, err := read(devices)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	inside, err := bpf.OfNamespace()
	out, err = programs(out, at.Where, "BPF programs of the network namespace", inside, err)
	if err != nil {
		return out, err
	}
	filters, everywhere, err := bpf.Netfilter()
	if everywhere {
		filters = nil // ofMachine has them
	}
	out, err = programs(out, at.Where, "BPF programs of packet filters",
		cmp.Or(strings.Join(filters, ", "), bpf.None), err)
	if err != nil || at.Rules == nil {
		return out, err
	}
	rules, err := at.Rules()
	return append(out, rules...), err
}

func (at Inspected) sysctls(devices []link.Inspected) (out []path.Setting, err error) {
	keys := deciding
	if slices.ContainsFunc(devices, func(d link.Inspected) bool { return d.Kind == "bridge" }) {
		keys = slices.Concat(deciding, bridging)
	}
	for _, key := range keys {
		v, err := sysctl.Get(key)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		case err != nil:
			return nil, err
		default:
			out = append(out, path.Setting{Where: at.Where, What: "sysctl " + key,
				Value: cmp.Or(v, "empty")})
		}
	}
	return out, nil
}

func (at Inspected) routes(devices []link.Inspected) (out []path.Setting, err error) {
	all, err := link.Routes()
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if at.ours(r) {
			out = append(out, path.Setting{Where: at.Where, Of: "route " + r.Text, Value: "there"})
		}
	}
	if at.Devices != nil {
		return out, nil
	}
	policies, err := link.Policies()
	return append(out, path.Setting{Where: at.Where, What: "routing policy", Value: policies}), err
}

func (at Inspected) ours(r link.Routed) bool {
	return (at.Devices == nil || slices.Contains(at.Devices, r.Device)) &&
		(len(at.To) == 0 || slices.ContainsFunc(at.To, r.To.Contains))
}

// filters returns the chains and tables of packet filters. In a shared namespace these are only the
// ones at hooks of the path's devices, which see frames first.
func (at Inspected) filters(devices []link.Inspected) (out []path.Setting, err error) {
	all, err := nft.List()
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		hooks := slices.ContainsFunc(devices, func(d link.Inspected) bool {
			return l.Hooks(d.Name)
		})
		if hooks || at.Devices == nil {
			out = append(out, path.Setting{Where: at.Where, Of: l.Name, Value: l.Text,
				Diverts: hooks})
		}
	}
	if at.Devices != nil {
		return out, nil
	}
	tables, err := xtables.List()
	for _, t := range tables {
		out = append(out, path.Setting{Where: at.Where, Of: "table " + t.Name, Value: t.Text})
	}
	return out, err
}

func (at Inspected) changes(devices []link.Inspected) (out []path.Setting, err error) {
	if at.watch == nil {
		return nil, nil
	}
	c, err := at.watch.Read(at.ours)
	if err != nil {
		return nil, err
	}
	add := func(of, what string, n int) {
		out = append(out, path.Setting{Where: at.Where, Of: of,
			What: "number of changes to " + what, Value: strconv.Itoa(n)})
	}
	for _, d := range devices {
		add(d.Name, "traffic control", c.Traffic[d.Name])
		add(d.Name, "the link", c.Links[d.Name])
	}
	add("", "routes", c.Routes)
	if at.Devices == nil { // in a shared namespace, other programs make changes, too
		add("", "routing policies", c.Policies)
		out = append(out, path.Setting{Where: at.Where, What: "changes that were lost",
			Value: strconv.FormatBool(c.Lost)})
		filters, err := nft.Generation()
		if err != nil {
			return nil, err
		}
		add("", "packet filters", int(filters))
	}
	return out, nil
}

// ipsec returns the XFRM policies and states. It returns none for shared namespaces, where other
// programs add and remove them.
func (at Inspected) ipsec([]link.Inspected) (out []path.Setting, err error) {
	if at.Devices != nil {
		return nil, nil
	}
	policies, states, err := xfrm.List()
	for _, p := range policies {
		out = append(out, path.Setting{Where: at.Where, Of: "xfrm policy " + p, Value: "there"})
	}
	for _, s := range states {
		out = append(out, path.Setting{Where: at.Where, Of: "xfrm state " + s, Value: "there"})
	}
	return out, err
}
