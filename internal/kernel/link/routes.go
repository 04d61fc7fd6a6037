package link

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Routed is a route with its device and a description.
type Routed struct {
	To           netip.Prefix
	Device, Text string
}

// Routes lists the routes of all tables. It leaves out local routes, which the kernel makes for
// addresses, and IPv6 routes that the kernel adds and removes by itself.
func Routes() ([]Routed, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	all, err := listRoutes()
	if err != nil {
		return nil, err
	}
	var out []Routed
	for _, m := range all {
		r, err := parseRoute(m.Data)
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		if r.stays() {
			out = append(out, r.routed(names))
		}
	}
	slices.SortFunc(out, func(a, b Routed) int { return strings.Compare(a.Text, b.Text) })
	return out, nil
}

type routeMessage struct {
	*nl.RtMsg
	attrs fields
}

func parseRoute(b []byte) (m routeMessage, err error) {
	attrs, err := fieldsOf(b, unix.SizeofRtMsg)
	if err != nil {
		return m, err
	}
	return routeMessage{nl.DeserializeRtMsg(b), attrs}, nil
}

func (m routeMessage) number(attr uint16) int { return int(m.attrs.number(attr)) }

func (m routeMessage) table() int { return cmp.Or(m.number(unix.RTA_TABLE), int(m.Table)) }

func (m routeMessage) to() netip.Prefix {
	addr, ok := netip.AddrFromSlice(m.attrs[unix.RTA_DST])
	switch {
	case ok:
	case m.Family == unix.AF_INET6:
		addr = netip.IPv6Unspecified()
	default:
		addr = netip.IPv4Unspecified()
	}
	return netip.PrefixFrom(addr, int(m.Dst_len))
}

func (m routeMessage) stays() bool {
	if m.attrs[unix.RTA_ENCAP_TYPE] != nil ||
		len(m.attrs[unix.RTA_METRICS]) > 0 && m.Protocol != unix.RTPROT_RA {
		return true
	}
	local := m.table() == unix.RT_TABLE_LOCAL
	if m.Family == unix.AF_INET {
		return !local || m.Protocol != unix.RTPROT_KERNEL
	}
	to := m.to().Addr()
	fleeting := m.Protocol == unix.RTPROT_RA || to.IsLinkLocalUnicast() || to.IsMulticast()
	return !fleeting && (!local && m.Type == unix.RTN_UNICAST || m.Protocol != unix.RTPROT_KERNEL)
}

// routeWords lists the attributes that a route's description leaves out or writes in words.
var routeWords = []uint16{unix.RTA_DST, unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_PRIORITY,
	unix.RTA_PREFSRC, unix.RTA_METRICS,
	unix.RTA_TABLE, unix.RTA_ENCAP_TYPE, unix.RTA_CACHEINFO, unix.RTA_EXPIRES}

const nexthopID = 30 // RTA_NH_ID

var routeMetrics = []string{unix.RTAX_LOCK: "lock", unix.RTAX_MTU: "mtu",
	unix.RTAX_WINDOW: "window", unix.RTAX_RTT: "rtt",
	unix.RTAX_RTTVAR:     "rttvar",
	unix.RTAX_SSTHRESH:   "ssthresh",
	unix.RTAX_CWND:       "cwnd",
	unix.RTAX_ADVMSS:     "advmss",
	unix.RTAX_REORDERING: "reordering",
	unix.RTAX_HOPLIMIT:   "hoplimit",
	unix.RTAX_INITCWND:   "initcwnd",
	unix.RTAX_FEATURES:   "features", unix.RTAX_RTO_MIN: "rto_min", unix.RTAX_INITRWND: "initrwnd",
	unix.RTAX_QUICKACK: "quickack", unix.RTAX_FASTOPEN_NO_COOKIE: "fastopen_no_cookie"}

// LWTUNNEL_ENCAP_…
var encapsulations = []string{1: "mpls", 2: "ip", 3: "ila", 4: "ip6", 5: "seg6", 6: "bpf",
	7: "seg6local", 8: "rpl", 9: "ioam6", 10: "xfrm"}

func (m routeMessage) routed(names map[int]string) Routed {
	to := m.to()
	text := to.String()
	if m.Dst_len == 0 {
		text = "default"
	}
	word := func(name, value string) {
		if value != "" && value != "0" {
			text += " " + name + " " + value
		}
	}
	device := names[m.number(unix.RTA_OIF)]
	word("via", address(m.attrs[unix.RTA_GATEWAY]))
	word("dev", device)
	word("src", address(m.attrs[unix.RTA_PREFSRC]))
	for _, n := range []struct {
		name string
		is   int
	}{{"table", m.table()}, {"metric", m.number(unix.RTA_PRIORITY)}, {"type", int(m.Type)},
		{"scope", int(m.Scope)}, {"tos", int(m.Tos)}} {
		word(n.name, strconv.Itoa(n.is))
	}
	metrics, _ := attributesOf(m.attrs[unix.RTA_METRICS], 0)
	for _, a := range metrics {
		switch kind := int(typeOf(a)); {
		case kind == unix.RTAX_CC_ALGO:
			word("congctl", nl.BytesToString(a.Data))
		case kind < len(routeMetrics) && routeMetrics[kind] != "" && len(a.Data) == 4:
			word(routeMetrics[kind], strconv.FormatUint(
				uint64(binary.NativeEndian.Uint32(a.Data)), 10))
		default:
			word(fmt.Sprintf("metric %d", kind), checksum(a.Data))
		}
	}
	if t := m.attrs[unix.RTA_ENCAP_TYPE]; len(t) == 2 {
		kind := int(binary.NativeEndian.Uint16(t))
		name := strconv.Itoa(kind)
		if kind < len(encapsulations) && encapsulations[kind] != "" {
			name = encapsulations[kind]
		}
		word("encap", name)
	}
	for _, kind := range slices.Sorted(maps.Keys(m.attrs)) {
		if !slices.Contains(routeWords, kind) &&
			(kind != unix.RTA_PREF || slices.Max(m.attrs[kind]) > 0) {
			word(cmp.Or(map[uint16]string{unix.RTA_ENCAP: "by", unix.RTA_MULTIPATH: "nexthops",
				nexthopID: "nhid"}[kind],
				fmt.Sprintf("attribute %d", kind)), checksum(m.attrs[kind]))
		}
	}
	return Routed{to, device, text}
}

func checksum(b []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(b)) }

func address(ip net.IP) string {
	if ip == nil {
		return ""
	}
	return ip.String()
}

// Policies describes the rules that choose a routing table. Each text ends with a checksum of all
// that the kernel says of the rule: marks, ports, devices and actions count as well.
func Policies() (string, error) {
	msgs, err := ReadPolicy()
	if err != nil {
		return "", err
	}
	var all []string
	for _, m := range msgs {
		f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
		if err != nil {
			return "", fmt.Errorf("list policy rules: %w", err)
		}
		h := nl.DeserializeRtMsg(m.Data) // same layout as struct fib_rule_hdr
		all = append(all, fmt.Sprintf("ip rule %d: from %s to %s table %d %s",
			f.number(nl.FRA_PRIORITY), network(f[nl.FRA_SRC], h.Src_len),
			network(f[nl.FRA_DST], h.Dst_len), f.number(nl.FRA_TABLE), checksum(m.Data)))
	}
	return list(all), nil
}

func network(address []byte, bits uint8) string {
	a, ok := netip.AddrFromSlice(address)
	if !ok {
		return "all"
	}
	return netip.PrefixFrom(a, int(bits)).String()
}

func policyRules(family int) ([]netlink.Rule, error) {
	rules, err := dump(func() ([]netlink.Rule, error) { return netlink.RuleList(family) })
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list policy rules: %w", err)
	}
	return rules, nil
}

// RoutedBySocket describes the first policy rule by which packets of two programs to one address
// may take different routes, or returns "". Rules that refuse packets count as well, except for
// those that select a mark.
func RoutedBySocket() (string, error) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := policyRules(family)
		if err != nil {
			return "", err
		}
		if rules == nil {
			continue
		}
		for _, r := range rules {
			if r.UIDRange != nil || r.Sport != nil || r.Dport != nil || r.IPProto != 0 ||
				r.Tos != 0 {
				return r.String() + ", for some sockets", nil
			}
		}
		refusing, err := refusingRule(family)
		if refusing != "" || err != nil {
			return refusing, err
		}
	}
	return "", nil
}

// refusingRule describes the first policy rule that refuses packets, or returns "". The library's
// list lacks such rules.
func refusingRule(family int) (string, error) {
	msgs, err := listPolicy(byte(family))
	if err != nil {
		return "", err
	}
	names := map[uint8]string{unix.RTN_BLACKHOLE: "blackhole", unix.RTN_UNREACHABLE: "unreachable",
		unix.RTN_PROHIBIT: "prohibit"}
	for _, b := range msgs {
		m := nl.DeserializeRtMsg(b.Data) // same layout as struct fib_rule_hdr
		attrs, err := fieldsOf(b.Data, unix.SizeofRtMsg)
		if err != nil {
			return "", fmt.Errorf("list policy rules: %w", err)
		}
		if name := names[m.Type]; name != "" &&
			(attrs.number(nl.FRA_FWMARK) == 0 || m.Flags&netlink.FibRuleInvert != 0) {
			return fmt.Sprintf("ip rule %d: %s", attrs.number(nl.FRA_PRIORITY), name), nil
		}
	}
	return "", nil
}

// LocalRoute returns nil if the loopback device delivers this machine's packets to its own address,
// or names the rule or route that prevents it.
func LocalRoute(to netip.Addr) error {
	routes, err := netlink.RouteGet(to.AsSlice())
	if err != nil {
		return fmt.Errorf("look up the route to %s: %w", to, err)
	}
	for _, r := range routes {
		if r.Type != unix.RTN_LOCAL {
			return fmt.Errorf("the route to %s is not this machine's own: %s", to, r)
		}
	}
	return nil
}

// SetRouteCongestion sets the congestion control of the route to a network, which must be the only
// one, for connections from the calling thread's namespace. It returns an error if the kernel does
// not adopt it.
func SetRouteCongestion(to netip.Prefix, name string) error {
	err := changeRoute(to, func(r *netlink.Route) { r.Congctl = name })
	if err == nil {
		var now *netlink.Route
		if now, err = routeTo(to); err == nil && now.Congctl != name {
			err = errKept
		}
	}
	if err != nil {
		return fmt.Errorf("set congestion control %s of the route to %s: %w", name, to, err)
	}
	return nil
}

func changeRoute(to netip.Prefix, change func(*netlink.Route)) error {
	r, err := routeTo(to)
	if err != nil {
		return err
	}
	change(r)
	return netlink.RouteReplace(r)
}

func routeTo(to netip.Prefix) (*netlink.Route, error) {
	all, err := dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Dst: ipNet(to)},
			netlink.RT_FILTER_DST)
	})
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("there are %d", len(all))
	}
	return &all[0], nil
}
