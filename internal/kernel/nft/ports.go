package nft

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// PortRule is a rule for packets with certain ports.
type PortRule struct {
	// Place has the chain, and how many rules for packets with any port are before this one.
	Place string
	// Text has all else of the rule. Where it compares or sets a port, the text has the index of
	// that port in Ports instead.
	Text  string
	Ports []uint16
	// Tested lists the indexes of the ports that a packet must have, as source or destination.
	Tested []int
}

// PortUse is what the rules of a namespace have to do with ports.
type PortUse struct {
	Rules []PortRule
	// Cuts lists ports that other rules may tell apart from the ports below and above them. Those
	// in between two cuts are alike to these rules.
	Cuts []uint16
	// Targets lists the ports to which such rules redirect packets.
	Targets []uint16
}

// PortUse returns what the rules have to do with ports. ok is false if that is not known.
func (s Saved) PortUse() (out PortUse, ok bool) {
	sets := s.setWords()
	others := map[string]int{} // rules for any port, by chain
	for r := range s.eachRule() {
		r.exprs = r.expressions()
		p := portReader{rule: r, sets: sets, use: &out}
		if !p.read() {
			return out, false
		}
		chain := r.table + " " + r.chain
		if len(p.tested) == 0 {
			others[chain]++
			for _, i := range p.targets {
				out.Targets = append(out.Targets, p.ports[i])
			}
			continue
		}
		q := portReader{rule: r, sets: sets, use: &PortUse{}, text: true}
		q.read()
		out.Rules = append(out.Rules, PortRule{Place: fmt.Sprint(chain, " ", others[chain]),
			Text: strings.Join(q.parts, " "), Ports: p.ports, Tested: p.tested})
	}
	return out, true
}

// setWords returns the 16-bit numbers in the elements of each set, by table and name.
func (s Saved) setWords() map[string][]uint16 {
	out := map[string][]uint16{}
	for family, a := range s.each(unix.NFT_MSG_NEWSETELEM) {
		name := familyName(family) + " " + a.text(unix.NFTA_SET_ELEM_LIST_TABLE) + " " +
			a.text(unix.NFTA_SET_ELEM_LIST_SET)
		raw.Words(a.get(unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(n uint16) {
			out[name] = append(out[name], n)
		})
	}
	return out
}

// content is what a register has.
type content int

const (
	otherData content = iota
	onePort
	portAndMore // a port among other data
	constant
)

// portReader reads one rule.
type portReader struct {
	rule *savedRule
	sets map[string][]uint16
	use  *PortUse
	text bool // whether parts are texts; without, they are empty

	parts   []string
	ports   []uint16
	tested  []int
	targets []int
	acted   bool // an expression before has an effect

	registers map[uint32]content
	at        map[uint32]int // the part of the constant in a register
	data      map[uint32][]byte
}

// read returns false if it does not know what an expression does with ports.
func (p *portReader) read() bool {
	for _, e := range p.rule.exprs {
		if p.rule.word(e) != "" { // it never matches, or always
			p.part("%s", e.name)
			continue
		}
		if !p.expression(e) {
			return false
		}
	}
	return true
}

// part appends a text, and returns its index.
func (p *portReader) part(format string, a ...any) int {
	text := ""
	if p.text {
		text = fmt.Sprintf(format, a...)
	}
	p.parts = append(p.parts, text)
	return len(p.parts) - 1
}

// portless lists expressions that neither read nor set ports.
var portless = []string{"counter", "log", "last", "notrack", "reject", "flow_offload", "objref",
	"xfrm", "tunnel", "osf", "fib", "rt", "exthdr", "socket", "quota", "connlimit", "limit"}

func (p *portReader) expression(e expression) bool {
	from, to := registers(e)
	switch e.name {
	case "match":
		return p.match(e)
	case "target":
		return p.target(e)
	case "counter", "log", "last":
		return true
	}
	part := p.part("%s%x", e.name, e.list.data)
	load := func(c content) bool {
		if p.registers == nil { // rules of iptables need none
			p.registers, p.at, p.data = map[uint32]content{}, map[uint32]int{}, map[uint32][]byte{}
		}
		p.registers[to] = c
		return true
	}
	switch e.name {
	case "payload":
		return p.payload(e, load)
	case "ct":
		if !p.writes(e, unix.NFTA_CT_SREG) {
			return false
		}
		switch e.attrs.number(unix.NFTA_CT_KEY) {
		case unix.NFT_CT_PROTO_SRC, unix.NFT_CT_PROTO_DST:
			return load(portAndMore)
		}
		return load(otherData)
	case "meta":
		return p.writes(e, unix.NFTA_META_SREG) && load(otherData)
	case "bitwise", "byteorder":
		c := p.registers[from]
		return c != onePort && c != portAndMore && load(otherData)
	case "cmp":
		return p.compare(e, from, part)
	case "range":
		if c := p.registers[from]; c == onePort || c == portAndMore {
			raw.Words(e.list.data, p.cut)
		}
		return true
	case "lookup":
		return p.lookup(e, load)
	case "immediate":
		if to == unix.NFT_REG_VERDICT {
			p.acted = true
			return true
		}
		value, _ := decode(e.attrs.get(unix.NFTA_IMMEDIATE_DATA))
		load(constant)
		p.at[to], p.data[to] = part, value.get(unix.NFTA_DATA_VALUE)
		return true
	case "nat":
		return p.nat(e, unix.NFTA_NAT_REG_PROTO_MIN, unix.NFTA_NAT_REG_PROTO_MAX)
	case "redir":
		return p.nat(e, unix.NFTA_REDIR_REG_PROTO_MIN, unix.NFTA_REDIR_REG_PROTO_MAX)
	case "masq":
		return p.nat(e, unix.NFTA_MASQ_REG_PROTO_MIN, unix.NFTA_MASQ_REG_PROTO_MAX)
	}
	p.acted = p.acted || !slices.Contains([]string{"fib", "rt", "exthdr", "socket"}, e.name)
	return slices.Contains(portless, e.name) && load(otherData)
}

// writes notes whether an expression sets a mark or the like from a register. It returns false if
// that has a port: rules that compare the mark then tell ports apart that they do not name.
func (p *portReader) writes(e expression, source uint16) bool {
	if e.attrs.get(source) == nil {
		return true
	}
	p.acted = true
	c := p.registers[slot(e.attrs.number(source))]
	return c != onePort && c != portAndMore
}

func (p *portReader) cut(n uint16) { p.use.Cuts = append(p.use.Cuts, n) }

// test notes that only packets with a port match, unless an expression before has an effect on all.
func (p *portReader) test(n uint16) (index int, ok bool) {
	if p.acted {
		p.cut(n)
		return 0, false
	}
	p.ports = append(p.ports, n)
	index = len(p.ports) - 1
	p.tested = append(p.tested, index)
	return index, true
}

func (p *portReader) payload(e expression, load func(content) bool) bool {
	if e.attrs.get(unix.NFTA_PAYLOAD_SREG) != nil { // it changes the packet
		return false
	}
	offset, size := e.attrs.number(unix.NFTA_PAYLOAD_OFFSET), e.attrs.number(unix.NFTA_PAYLOAD_LEN)
	const ports = 4 // bytes of both ports
	switch base := e.attrs.number(unix.NFTA_PAYLOAD_BASE); {
	case base != unix.NFT_PAYLOAD_TRANSPORT_HEADER:
		return base != unix.NFT_PAYLOAD_INNER_HEADER && !p.behind(base, offset, size) && load(otherData)
	case size == 2 && (offset == offsetSport || offset == offsetDport):
		return load(onePort)
	case offset < ports:
		return load(portAndMore)
	}
	return load(otherData)
}

// behind reports whether bytes may be behind the header from which they are counted, among the
// ports.
func (p *portReader) behind(base, offset, size uint32) bool {
	const ethernetSize, headerSize4, headerSize6, addressSize = 14, 20, 40, 16
	switch {
	case base == unix.NFT_PAYLOAD_LL_HEADER:
		return offset+size > ethernetSize
	case p.rule.header[0] == unix.NFPROTO_IPV4:
		return offset+size > headerSize4
	case p.rule.header[0] == unix.NFPROTO_IPV6:
		return offset+size > headerSize6
	}
	address6 := (offset == offsetSrc6 || offset == offsetDst6) && size <= addressSize
	return offset+size > headerSize4 && !address6
}

func (p *portReader) compare(e expression, from uint32, part int) bool {
	value, _ := decode(e.attrs.get(unix.NFTA_CMP_DATA))
	b := value.get(unix.NFTA_DATA_VALUE)
	switch p.registers[from] {
	case portAndMore:
		raw.Words(b, p.cut)
	case onePort:
		if len(b) != 2 {
			return false
		}
		n := binary.BigEndian.Uint16(b)
		if e.attrs.number(unix.NFTA_CMP_OP) != unix.NFT_CMP_EQ {
			p.cut(n)
			return true
		}
		if i, ok := p.test(n); ok {
			p.parts[part] = fmt.Sprint("cmp port ", i)
		}
	}
	return true
}

// lookup treats a set's elements as opaque where a rule looks for ports in it.
func (p *portReader) lookup(e expression, load func(content) bool) bool {
	name := p.rule.table + " " + e.attrs.text(unix.NFTA_LOOKUP_SET)
	for _, c := range p.registers {
		if c == onePort || c == portAndMore {
			for _, n := range p.sets[name] {
				p.cut(n)
			}
			break
		}
	}
	if e.attrs.get(unix.NFTA_LOOKUP_DREG) == nil {
		return true
	}
	if slot(e.attrs.number(unix.NFTA_LOOKUP_DREG)) == unix.NFT_REG_VERDICT {
		p.acted = true
		return true
	}
	return load(portAndMore) // the map's data may be one
}

// nat reads to which port a rule translates.
func (p *portReader) nat(e expression, low, high uint16) bool {
	p.acted = true
	if e.attrs.get(low) == nil {
		return e.attrs.get(high) == nil
	}
	reg := slot(e.attrs.number(low))
	if h := e.attrs.get(high); h != nil && slot(e.attrs.number(high)) != reg {
		return false
	}
	if p.registers[reg] != constant || len(p.data[reg]) < 2 {
		return false
	}
	p.ports = append(p.ports, binary.BigEndian.Uint16(p.data[reg]))
	i := len(p.ports) - 1
	p.targets = append(p.targets, i)
	p.parts[p.at[reg]] = fmt.Sprint("immediate port ", i)
	return true
}

// portlessXT lists matches and targets of xtables that neither read nor set ports.
var portlessXT = []string{"addrtype", "ah", "connlabel", "connmark", "devgroup", "dscp", "ecn",
	"esp", "icmp", "icmp6", "iprange", "length", "mac", "mark", "physdev", "pkttype", "policy",
	"realm", "rpfilter", "state", "tcpmss", "tos", "ttl", "hl",
	"CONNMARK", "DSCP", "HL", "MARK", "NOTRACK", "REJECT", "TCPMSS", "TOS", "TTL"}

func (p *portReader) match(e expression) bool {
	info, name := e.attrs.get(unix.NFTA_MATCH_INFO), e.xt()
	if name == "comment" {
		return true
	}
	switch {
	case name == "tcp" || name == "udp":
		return p.transport(name, info)
	case name == "multiport", name == "conntrack":
		raw.Words(info, p.cut)
	case !slices.Contains(portlessXT, name):
		return false
	}
	p.part("%s %d %x", name, e.attrs.number(unix.NFTA_MATCH_REV), info)
	return true
}

// transport reads struct xt_tcp or xt_udp: two ranges of ports, flags. The kernel pads both.
func (p *portReader) transport(name string, info []byte) bool {
	const ranges, optionAndFlags = 8, 3
	inverse := ranges
	if name == "tcp" {
		inverse += optionAndFlags
	}
	if inverse >= len(info) {
		return false
	}
	p.part("%s %x", name, info[ranges:])
	for side := range 2 { // source, destination
		low := binary.NativeEndian.Uint16(info[4*side:])
		high := binary.NativeEndian.Uint16(info[4*side+2:])
		switch {
		case low == 0 && high == 1<<16-1:
			p.part("any")
			continue
		case low == high && info[inverse]&(1<<side) == 0:
			if i, ok := p.test(low); ok {
				p.part("port %d", i)
				continue
			}
		}
		p.cut(low)
		p.cut(high)
		p.part("%d-%d", low, high)
	}
	return true
}

// Offsets in struct nf_nat_range2 and, of older targets for IPv4, nf_nat_ipv4_multi_range_compat.
const (
	rangePorts, rangeSize   = 36, 40
	compatFlags, compatPort = 4, 16
	rangeHasPort            = 2 // NF_NAT_RANGE_PROTO_SPECIFIED
)

func (p *portReader) target(e expression) bool {
	info, name := e.attrs.get(unix.NFTA_TARGET_INFO), e.xt()
	text := func(b []byte) { p.part("%s %d %x", name, e.attrs.number(unix.NFTA_TARGET_REV), b) }
	p.acted = true
	switch {
	case xtables.Logs(name):
		return true
	case slices.Contains(portlessXT, name):
		text(info)
		return true
	case !slices.Contains([]string{"DNAT", "SNAT", "REDIRECT", "MASQUERADE", "NETMAP"}, name):
		return false
	}
	flags, at := 0, rangePorts
	if len(info) < rangeSize {
		flags, at = compatFlags, compatPort
	}
	if len(info) < at+4 {
		return false
	}
	if binary.NativeEndian.Uint32(info[flags:])&rangeHasPort == 0 {
		text(info)
		return true
	}
	port := binary.BigEndian.Uint16(info[at:])
	if port != binary.BigEndian.Uint16(info[at+2:]) {
		return false
	}
	p.ports = append(p.ports, port)
	i := len(p.ports) - 1
	p.targets = append(p.targets, i)
	masked := slices.Clone(info)
	clear(masked[at : at+4])
	text(masked)
	p.part("port %d", i)
	return true
}
