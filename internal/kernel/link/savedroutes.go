package link

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// linux/nexthop.h
const (
	nexthopHeader  = 8 // struct nhmsg: family, scope, protocol, reserved, flags
	nexthopGroup   = 2 // NHA_GROUP
	nexthopDevice  = 5 // NHA_OIF
	nexthopGateway = 6 // NHA_GATEWAY
)

// ReadAddresses reads the addresses of the calling thread's namespace, except duplicates of other
// machines' addresses.
func ReadAddresses() ([]raw.Message, error) {
	return rawList("addresses", unix.RTM_GETADDR, unix.RTM_NEWADDR, bothFamilies,
		unix.SizeofIfAddrmsg, func(b []byte) bool { return b[2]&unix.IFA_F_DADFAILED == 0 })
}

// ReadNexthops reads the nexthop objects, groups last.
func ReadNexthops() ([]raw.Message, error) {
	out, err := rawList("nexthops", unix.RTM_GETNEXTHOP, unix.RTM_NEWNEXTHOP, []byte{unix.AF_UNSPEC},
		nexthopHeader, nil)
	slices.SortStableFunc(out, func(a, b raw.Message) int { return isGroup(a) - isGroup(b) })
	return out, err
}

func isGroup(m raw.Message) int {
	if f, err := fieldsOf(m.Data, nexthopHeader); err == nil && f.has(nexthopGroup) {
		return 1
	}
	return 0
}

// ReadRoutes reads the routes of all tables, except those that the kernel makes for addresses in
// table local, and cached ones.
func ReadRoutes() ([]raw.Message, error) {
	all, err := listRoutes()
	return slices.DeleteFunc(all, func(m raw.Message) bool {
		r := nl.DeserializeRtMsg(m.Data)
		return r.Table == unix.RT_TABLE_LOCAL && r.Protocol == unix.RTPROT_KERNEL
	}), err
}

// listRoutes leaves out cached routes.
func listRoutes() ([]raw.Message, error) {
	return rawList("routes", unix.RTM_GETROUTE, unix.RTM_NEWROUTE, bothFamilies, unix.SizeofRtMsg,
		func(b []byte) bool { return nl.DeserializeRtMsg(b).Flags&unix.RTM_F_CLONED == 0 })
}

// ReadPolicy reads the rules that choose a routing table, the usual ones included.
func ReadPolicy() ([]raw.Message, error) { return listPolicy(bothFamilies...) }

func listPolicy(families ...byte) ([]raw.Message, error) {
	return rawList("policy rules", unix.RTM_GETRULE, unix.RTM_NEWRULE, families,
		unix.SizeofRtMsg, nil)
}

// MakeAddresses adds addresses, in order, without a lifetime and without duplicate address
// detection. It removes the routes to their networks that the kernel adds, because these are among
// the routes of ReadRoutes; the kernel adds them again when a device is set down and up, if it does
// so on the machine.
func MakeAddresses(ms []raw.Message) []raw.Refused {
	if len(ms) == 0 {
		return nil
	}
	addresses := restore{unix.RTM_NEWADDR, unix.SizeofIfAddrmsg, addAddress, addressText, indexOf}
	refused := addresses.all(ms)
	again, err := misplaced(ms)
	if err == nil && len(again) > 0 {
		err = sendEach(again, unix.EADDRNOTAVAIL, func(c sender, m raw.Message) error {
			return c.send(unix.RTM_DELADDR, 0, m.Data)
		})
		slices.Reverse(again)
		refused = append(refused, addresses.all(again)...)
	}
	if err != nil {
		refused = append(refused, raw.Refused{What: "the order of IPv6 addresses", Err: err})
	}
	if err := removeNetworkRoutes(); err != nil {
		refused = append(refused, raw.Refused{What: "routes as on the machine", Err: err})
	}
	return refused
}

// misplaced returns the IPv6 addresses of the devices that list them in another order than ms does.
// The kernel puts a new address before those of its scope or, in later versions, behind them, and
// takes the first of equally good ones as the source of packets.
func misplaced(ms []raw.Message) (out []raw.Message, err error) {
	at := map[SavedAddress]int{} // positions in ms
	several, of := false, map[int]int{}
	for i, m := range ms {
		a, ok := ParseAddress(m)
		if !ok || a.Prefix.Addr().Is4() {
			continue
		}
		at[a] = i
		if !a.Prefix.Addr().IsLinkLocalUnicast() {
			of[a.Index]++
			several = several || of[a.Index] > 1
		}
	}
	if !several {
		return nil, nil
	}
	now, err := ReadAddresses()
	if err != nil {
		return nil, err
	}
	last, wrong := map[int]int{}, map[int]bool{} // by device
	for _, m := range now {
		a, _ := ParseAddress(m)
		if i, ok := at[a]; ok {
			wrong[a.Index] = wrong[a.Index] || i < last[a.Index]
			last[a.Index] = i
		}
	}
	return slices.DeleteFunc(slices.Clone(ms), func(m raw.Message) bool {
		a, ok := ParseAddress(m)
		return !ok || a.Prefix.Addr().Is4() || !wrong[a.Index]
	}), nil
}

// removeNetworkRoutes removes the routes that the kernel has added to networks of addresses.
func removeNetworkRoutes() error {
	all, err := listRoutes()
	if err != nil {
		return err
	}
	return sendEach(slices.DeleteFunc(all, func(m raw.Message) bool {
		r := nl.DeserializeRtMsg(m.Data)
		return r.Type != unix.RTN_UNICAST || r.Protocol != unix.RTPROT_KERNEL
	}), unix.ESRCH, func(c sender, m raw.Message) error {
		return c.send(unix.RTM_DELROUTE, 0, m.Data)
	})
}

func addressText(b []byte, names map[int]string) string {
	a, _ := ParseAddress(raw.Message{Type: unix.RTM_NEWADDR, Data: b})
	return fmt.Sprintf("address %s of %s", a.Prefix, names[a.Index])
}

func addAddress(c sender, b []byte) error {
	f, err := fieldsOf(b, unix.SizeofIfAddrmsg)
	if err != nil {
		return err
	}
	list, err := only(b, unix.SizeofIfAddrmsg, unix.IFA_ADDRESS, unix.IFA_LOCAL, unix.IFA_LABEL,
		unix.IFA_BROADCAST, unix.IFA_RT_PRIORITY)
	if err != nil {
		return err
	}
	was := f.number(unix.IFA_FLAGS)
	flags := unix.IFA_F_NODAD | was&(unix.IFA_F_HOMEADDRESS|unix.IFA_F_NOPREFIXROUTE)
	if b[0] == unix.AF_INET6 && was&unix.IFA_F_PERMANENT == 0 {
		flags |= unix.IFA_F_NOPREFIXROUTE // the route came with a router's advertisement, or a lease
	}
	const ever = ^uint32(0)
	preferred := ever
	if c := f[unix.IFA_CACHEINFO]; len(c) >= 4 && binary.NativeEndian.Uint32(c) == 0 {
		preferred = 0 // deprecated
	}
	times := slices.Concat(word(preferred), word(ever), word(0), word(0)) // struct ifa_cacheinfo
	list = append(list, netlink.Attribute{Type: unix.IFA_FLAGS, Data: word(flags)},
		netlink.Attribute{Type: unix.IFA_CACHEINFO, Data: times})
	header := slices.Clone(b[:unix.SizeofIfAddrmsg])
	header[2] = 0 // flags
	return c.send(unix.RTM_NEWADDR, netlink.Create, append(header, marshal(list...)...))
}

func makeNexthops(ms []raw.Message) []raw.Refused {
	if len(ms) == 0 {
		return nil
	}
	const (
		id, blackhole, encapType, encap, fdb = 1, 4, 7, 8, 11
		flags                                = 4 // offset
	)
	number := func(b []byte, kind uint16) int {
		f, _ := fieldsOf(b, nexthopHeader)
		return int(f.number(kind))
	}
	send := func(c sender, b []byte) error {
		list, err := only(b, nexthopHeader, id, nexthopGroup, blackhole, nexthopDevice,
			nexthopGateway, encapType, encap, fdb)
		if err != nil {
			return err
		}
		h := make([]byte, nexthopHeader)
		h[0], h[2] = b[0], b[2] // family, protocol
		binary.NativeEndian.PutUint32(h[flags:],
			binary.NativeEndian.Uint32(b[flags:])&unix.RTNH_F_ONLINK)
		return c.send(unix.RTM_NEWNEXTHOP, netlink.Create|netlink.Excl,
			append(h, marshal(list...)...))
	}
	return restore{unix.RTM_NEWNEXTHOP, nexthopHeader, send,
		func(b []byte, _ map[int]string) string { return fmt.Sprint("nexthop ", number(b, id)) },
		anyDevice}.all(ms)
}

// MakeRoutes makes nexthop objects and routes, those with gateways last. The devices must be up,
// those of nexthop objects must also have a carrier, and the addresses must exist.
func MakeRoutes(nexthops, routes []raw.Message) []raw.Refused {
	routes = slices.Clone(routes)
	slices.SortStableFunc(routes, func(a, b raw.Message) int { return distance(a) - distance(b) })
	at := slices.IndexFunc(routes, func(m raw.Message) bool { return distance(m) == far })
	if at < 0 {
		at = len(routes)
	}
	return slices.Concat(makeRoutes(routes[:at]), makeNexthops(nexthops), makeRoutes(routes[at:]))
}

func makeRoutes(ms []raw.Message) []raw.Refused {
	if len(ms) == 0 {
		return nil
	}
	return restore{unix.RTM_NEWROUTE, unix.SizeofRtMsg, addRoute, routeText, anyDevice}.all(ms)
}

// anyDevice returns no device: without a route, packets take another one, by any device.
func anyDevice([]byte) int { return 0 }

func routeText(b []byte, names map[int]string) string {
	f, err := fieldsOf(b, unix.SizeofRtMsg)
	if err != nil {
		return "a route"
	}
	out := "default route"
	if bits := b[1]; bits > 0 {
		to, _ := netip.AddrFromSlice(f[unix.RTA_DST])
		out = fmt.Sprintf("route to %s/%d", to, bits)
	}
	for _, h := range ParseHops(raw.Message{Type: unix.RTM_NEWROUTE, Data: b}) {
		if h.Gateway.IsValid() {
			out += " via " + h.Gateway.String()
		}
		if name := names[h.Index]; name != "" {
			out += " dev " + name
		}
	}
	if table := cmp.Or(f.number(unix.RTA_TABLE), uint32(b[4])); table != unix.RT_TABLE_MAIN {
		out += fmt.Sprint(" in table ", table)
	}
	return out
}

// Routes, by what must exist before them.
const (
	local  = iota
	nearby // addresses
	far    // routes to gateways
)

func distance(m raw.Message) int {
	f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
	switch {
	case err != nil || nl.DeserializeRtMsg(m.Data).Type == unix.RTN_LOCAL:
		return local
	case f.has(unix.RTA_GATEWAY, unix.RTA_VIA, unix.RTA_MULTIPATH, nexthopID):
		return far
	}
	return nearby
}

func addRoute(c sender, b []byte) error {
	list, err := only(b, unix.SizeofRtMsg, unix.RTA_DST, unix.RTA_SRC, unix.RTA_OIF,
		unix.RTA_GATEWAY, unix.RTA_PRIORITY, unix.RTA_PREFSRC, unix.RTA_METRICS,
		unix.RTA_MULTIPATH, unix.RTA_FLOW, unix.RTA_TABLE, unix.RTA_VIA, unix.RTA_PREF,
		unix.RTA_ENCAP_TYPE, unix.RTA_ENCAP, nexthopID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(a netlink.Attribute) bool {
		return typeOf(a) == nexthopID
	}) { // the kernel also prints the attributes of the nexthop object, but does not accept them
		list = without(list, unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_VIA, unix.RTA_MULTIPATH,
			unix.RTA_FLOW, unix.RTA_ENCAP_TYPE, unix.RTA_ENCAP)
	}
	flags := netlink.Create
	if b[0] == unix.AF_INET {
		flags |= netlink.Append // keeps the order of equal routes; IPv6 would make one multipath route
	}
	send := func(always uint32) error {
		h := slices.Clone(b[:unix.SizeofRtMsg])
		binary.NativeEndian.PutUint32(h[8:],
			binary.NativeEndian.Uint32(h[8:])&unix.RTNH_F_ONLINK|always)
		all := slices.Clone(list)
		for i, a := range all {
			if typeOf(a) == unix.RTA_MULTIPATH {
				all[i].Data = cleanHops(a.Data, byte(always))
			}
		}
		return c.send(unix.RTM_NEWROUTE, flags, append(h, marshal(all...)...))
	}
	err = send(0)
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		// The gateway is no longer reachable.
		if send(unix.RTNH_F_ONLINK) == nil {
			return nil
		}
	}
	return err
}

// cleanHops removes the flags that describe a state from a list of struct rtnexthop.
func cleanHops(b []byte, always byte) []byte {
	const flags = 2 // offset
	out := slices.Clone(b)
	eachHop(out, func(hop []byte) { hop[flags] = hop[flags]&unix.RTNH_F_ONLINK | always })
	return out
}

// PolicyHasPorts reports whether a message of ReadPolicy is a rule for certain ports.
func PolicyHasPorts(m raw.Message) bool {
	f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
	return err != nil || f[nl.FRA_SPORT_RANGE] != nil || f[nl.FRA_DPORT_RANGE] != nil
}

const inverted = 2 // FIB_RULE_INVERT

// PolicyOfUsers reports whether a message of ReadPolicy is a rule for the sockets of certain users.
// It returns the rule's preference, and the rule for those of all users, or none if it is for those
// of others than certain users. To the kernel, packets that it forwards or receives are root's.
func PolicyOfUsers(m raw.Message) (preference int, all raw.Message, ok bool) {
	list, err := attributesOf(m.Data, unix.SizeofRtMsg)
	if err != nil {
		return 0, m, false
	}
	f, _ := fieldsOf(m.Data, unix.SizeofRtMsg)
	users := f[nl.FRA_UID_RANGE] // struct fib_rule_uid_range
	if len(users) < 4 {
		return 0, m, false
	}
	if nl.DeserializeRtMsg(m.Data).Flags&inverted != 0 {
		return int(f.number(nl.FRA_PRIORITY)), raw.Message{}, true
	}
	list = without(list, nl.FRA_UID_RANGE)
	if binary.NativeEndian.Uint32(users) > 0 && !f.has(nl.FRA_IIFNAME) {
		list = append(list, netlink.Attribute{Type: nl.FRA_IIFNAME, Data: nl.ZeroTerminated("lo")})
	}
	header := slices.Clone(m.Data[:unix.SizeofRtMsg])
	return int(f.number(nl.FRA_PRIORITY)),
		raw.Message{Type: m.Type, Data: append(header, marshal(list...)...)}, true
}

// PolicySource returns the network that a message of ReadPolicy requires as packets' source, as an
// address and the number of its bits, and the device by which they come. Both may be nil.
func PolicySource(m raw.Message) (address []byte, bits int, device []byte) {
	const sourceBits = 2 // offset in struct fib_rule_hdr
	f, err := fieldsOf(m.Data, unix.SizeofRtMsg)
	if err != nil {
		return nil, 0, nil
	}
	return f[nl.FRA_SRC], int(m.Data[sourceBits]), f[nl.FRA_IIFNAME]
}

// MakePolicy replaces the rules that choose a routing table, if they are others.
func MakePolicy(ms []raw.Message) []raw.Refused {
	const (
		flags      = 8       // offset in struct fib_rule_hdr
		findSource = 1 << 16 // FIB_RULE_FIND_SADDR
	)
	send := func(t uint16, how netlink.HeaderFlags) func(sender, []byte) error {
		return func(c sender, b []byte) error {
			if !slices.Contains(bothFamilies, b[0]) {
				return unix.EAFNOSUPPORT
			}
			list, err := attributesOf(b, unix.SizeofRtMsg)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(list, func(a netlink.Attribute) bool {
				return typeOf(a) == nl.FRA_PRIORITY
			}) { // the kernel does not print a priority of 0, and without one it would choose another
				list = append(list, netlink.Attribute{Type: nl.FRA_PRIORITY, Data: word(0)})
			}
			h := slices.Clone(b[:unix.SizeofRtMsg])
			binary.NativeEndian.PutUint32(h[flags:],
				binary.NativeEndian.Uint32(h[flags:])&(inverted|findSource))
			return c.send(t, how, append(h, marshal(list...)...))
		}
	}
	r := restore{kind: unix.RTM_NEWRULE, header: unix.SizeofRtMsg,
		text: func(b []byte, _ map[int]string) string {
			f, _ := fieldsOf(b, unix.SizeofRtMsg)
			return fmt.Sprint("policy rule ", f.number(nl.FRA_PRIORITY))
		}, out: anyDevice}
	now, err := ReadPolicy()
	if err != nil {
		return []raw.Refused{{What: "policy rules", Err: err}}
	}
	if slices.EqualFunc(now, ms, func(a, b raw.Message) bool { return bytes.Equal(a.Data, b.Data) }) {
		return nil
	}
	r.send = send(unix.RTM_DELRULE, 0)
	refused := r.all(now)
	r.send = send(unix.RTM_NEWRULE, netlink.Create|netlink.Excl)
	return append(refused, r.all(ms)...)
}
