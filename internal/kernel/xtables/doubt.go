package xtables

import (
	"encoding/binary"
	"slices"
)

// Doubt is a rule that may match other packets in a copy of its namespace than in the original,
// because its match depends on the process, the CPU, earlier packets, packets' data, the time or
// another program.
type Doubt struct {
	Table  string // "ip filter", "iptables-legacy filter"
	Chain  string
	Number int    // in the chain, from 1
	Word   string // "owner", "recent", "limit"
}

// MACs has the hardware addresses of a copy's devices, as strings of bytes.
type MACs map[string]bool

// Has reports whether the copy has a device with the address.
func (m MACs) Has(mac []byte) bool { return m[string(mac)] }

// stateless lists the matches that are the same in a copy. It lacks owner, cgroup, cpu, socket,
// recent, limit, hashlimit, connlimit, connbytes, quota, string, time, geoip and unknown matches, and
// those of DoubtfulMatch.
var stateless = []string{"addrtype", "ah", "cluster", "comment", "connlabel",
	"connmark", "conntrack", "dccp", "devgroup", "dscp", "dst", "ecn", "esp", "eui64",
	"frag", "hbh", "helper", "icmp", "icmp6", "ipcomp", "iprange", "ipv6header", "ipvs",
	"l2tp", "length", "mark", "mh", "multiport", "osf", "physdev", "pkttype", "policy",
	"realm", "rpfilter", "rt", "sctp", "set", "srh", "state", "statistic", "tcp",
	"tcpmss", "tos", "u32", "udp", "udplite"}

// DoubtfulMatch reports whether a match of xtables may differ in a copy, which has devices with the
// known addresses.
func DoubtfulMatch(name string, data []byte, known MACs) bool {
	const macSize, unrouted = 6, 255
	switch {
	case name == "bpf" && len(data) > 1:
		// struct xt_bpf_info_v1: another mode than XT_BPF_MODE_BYTECODE is a file of the machine.
		return binary.NativeEndian.Uint16(data) != 0
	case name == "mac" && len(data) >= macSize: // struct xt_mac_info
		return !known.Has(data[:macSize])
	case (name == "ttl" || name == "hl") && len(data) > 1: // struct ipt_ttl_info: mode, value
		return data[1] != unrouted // which shows that there is no router on the way
	}
	return !slices.Contains(stateless, name)
}

const queue = "QUEUE"

// DoubtfulTarget reports whether a target of xtables leaves the decision to another program.
func DoubtfulTarget(name string) bool {
	return name == queue || name == "NFQUEUE" || name == "TPROXY"
}

// Logs reports whether a target of xtables only observes packets.
func Logs(target string) bool {
	return slices.Contains([]string{"LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "LED", "IDLETIMER",
		"RATEEST", "SET", "CHECKSUM", "SECMARK", "CONNSECMARK"}, target)
}

// RandomMatch reports whether a match or target of xtables chooses at random.
func RandomMatch(name string) bool {
	return slices.Contains([]string{"statistic", "HMARK"}, name)
}

// Random reports whether a rule of the table chooses at random.
func (s Saved) Random() bool {
	return slices.ContainsFunc(s.list(), func(e entry) bool {
		return RandomMatch(e.target.name) || slices.ContainsFunc(e.matches, func(m extension) bool {
			return RandomMatch(m.name)
		})
	})
}

// Doubts lists the doubtful rules, except those that only log. known has the hardware addresses of
// the copy.
func (s Saved) Doubts(known MACs) (out []Doubt) {
	all := s.rules()
	for i, word := range doubts(all, known, true) {
		if word != "" {
			out = append(out, Doubt{s.Table(), all[i].chain, all[i].number, word})
		}
	}
	return out
}

// doubts returns for each entry the word of its doubtful match, or "". With effective, rules that
// only log are not doubtful.
func doubts(all []entry, known MACs, effective bool) []string {
	out := make([]string, len(all))
	last := true // the chain's other rules only log
	for i, e := range slices.Backward(all) {
		if e.number == 0 {
			last = true
			continue
		}
		idle := e.verdict == "" || Logs(e.verdict) || e.verdict == "RETURN" && last
		last = last && idle
		if idle && effective {
			continue
		}
		for _, m := range e.matches {
			if out[i] == "" && DoubtfulMatch(m.name, m.data, known) {
				out[i] = m.name
			}
		}
		if out[i] == "" && DoubtfulTarget(e.verdict) {
			out[i] = e.verdict
		}
	}
	return out
}

// Assume returns a copy of the table. If match is true, the doubtful matches of the rules in Doubts
// always match, else these rules never match. A queue to a program becomes the program's possible
// verdict, accept or drop.
func (s Saved) Assume(match bool, known MACs) Saved {
	all := s.rules()
	return s.assume(all, doubts(all, known, true), match, known)
}

func (s Saved) assume(all []entry, words []string, match bool, known MACs) Saved {
	head, err := s.head()
	if err != nil {
		return s
	}
	f := s.family()
	var out []byte
	moved := map[uint32]uint32{} // positions
	for i, e := range all {
		moved[uint32(e.at)] = uint32(len(out))
		start := len(out)
		out = append(out, e.head...)
		queued := e.verdict == queue || e.verdict == "NFQUEUE"
		if words[i] != "" && !match && !queued {
			never(out[start:], f)
		}
		for _, m := range e.matches {
			if words[i] == "" || !DoubtfulMatch(m.name, m.data, known) {
				out = append(out, m.all...)
			}
		}
		target := len(out) - start
		if words[i] != "" && queued {
			out = append(out, standard(match)...)
		} else {
			out = append(out, e.target.all...)
		}
		binary.NativeEndian.PutUint16(out[start+f.next-2:], uint16(target))
		binary.NativeEndian.PutUint16(out[start+f.next:], uint16(len(out)-start))
	}
	moved[uint32(len(s.Entries))] = uint32(len(out))
	return s.move(head, out, moved)
}

// never makes an entry match no packet: it requires the source 255.255.255.255 or ffff:…:ffff.
func never(head []byte, f family) {
	const invertSource = 8 // IPT_INV_SRCIP
	for i := range f.address {
		head[i], head[2*f.address+i] = 0xff, 0xff // the address, its mask
	}
	head[f.inverse] &^= invertSource
}

// standard returns a target that accepts or drops.
func standard(accept bool) []byte {
	verdict := int32(-1 - nfDrop)
	if accept {
		verdict = -1 - nfAccept
	}
	out := make([]byte, extensionHead+8) // struct xt_standard_target
	binary.NativeEndian.PutUint16(out, uint16(len(out)))
	binary.NativeEndian.PutUint32(out[extensionHead:], uint32(verdict))
	return out
}

// move returns the table with other entries. moved has the new positions by the old ones.
func (s Saved) move(head info, entries []byte, moved map[uint32]uint32) Saved {
	out := Saved{Name: s.Name, Six: s.Six, Entries: entries}
	for _, e := range out.list() {
		if e.target.name == "" && int32(binary.NativeEndian.Uint32(e.target.data)) >= 0 {
			to := moved[binary.NativeEndian.Uint32(e.target.data)]
			binary.NativeEndian.PutUint32(e.target.data, to)
		}
	}
	for hook := range hooks {
		head.first[hook] = moved[head.first[hook]]
		head.policies[hook] = moved[head.policies[hook]]
	}
	head.size = uint32(len(entries))
	out.Info = head.bytes()
	return out
}
