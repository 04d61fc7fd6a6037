package firewall

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ParseSave parses the output of iptables-save, or of ip6tables-save if six. It skips unknown
// lines.
func ParseSave(text string, six bool) Rules {
	var out Rules
	table := ""
	at := map[string]int{} // by chain, for this table
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table, at = line[1:], map[string]int{}
		case strings.HasPrefix(line, ":"):
			f := strings.Fields(line[1:])
			if len(f) < 2 {
				continue
			}
			at[f[0]] = len(out.Chains)
			out.Chains = append(out.Chains, savedChain(table, f[0], f[1], six))
		case strings.HasPrefix(line, "-A "):
			words := saveWords(line)
			if len(words) < 2 {
				continue
			}
			if i, ok := at[words[1]]; ok {
				out.Chains[i].Rules = append(out.Chains[i].Rules, ParseRule(words[2:]))
			}
		}
	}
	return out
}

var priorities = map[string]int{"raw": -300, "mangle": -150, "nat": -100, "filter": 0,
	"security": 50}

func savedChain(table, name, policy string, six bool) Chain {
	c := Chain{V4: !six, V6: six, Table: table, Name: name, Kind: Filter,
		Priority: priorities[table], Drop: policy == "DROP"}
	if table == "nat" {
		c.Kind = NAT
	}
	if policy != "-" {
		c.Hook = Hook(strings.ToLower(name))
	}
	return c
}

func saveWords(line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		var w string
		if line[0] == '"' {
			w, line = quoted(line[1:])
		} else {
			w, line, _ = strings.Cut(line, " ")
		}
		out = append(out, w)
	}
	return out
}

func quoted(s string) (text, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// These options do not affect what a rule matches. The value tells whether they take an argument.
var harmless = map[string]bool{"--comment": true, "--reject-with": true, "--set-mark": true,
	"--set-xmark":  true,
	"--log-prefix": true, "--log-level": true, "--to-source": true, "--persistent": false,
	"--random": false, "--random-fully": false}

// These modules have no effect without their options.
var modules = map[string]bool{"tcp": true, "udp": true, "sctp": true, "conntrack": true,
	"state": true, "addrtype": true, "comment": true,
	"set": true, "multiport": true, "mark": true, "connmark": true, "limit": true, "iprange": true}

type saveOption struct {
	name, value string
	not         bool
}

// ParseRule parses a rule's words after the chain, in iptables-save's form.
func ParseRule(words []string) Rule {
	var r Rule
	seen := map[string]bool{}
	for len(words) > 0 {
		o := saveOption{}
		if words[0] == "!" && len(words) > 1 {
			o.not, words = true, words[1:]
		}
		o.name, words = words[0], words[1:]
		if len(words) > 0 && (harmless[o.name] ||
			!strings.HasPrefix(words[0], "-") && words[0] != "!") {
			o.value, words = words[0], words[1:]
		}
		if _, nothing := harmless[o.name]; nothing {
			continue
		}
		// A Rule can hold only one match of each kind; the second would replace the first.
		sets := len(r.Sets)
		known := r.option(o)
		twice := seen[o.name] && o.name != "-m" && sets == len(r.Sets)
		seen[o.name] = true
		if (!known || twice) && r.Unread == "" {
			r.Unread = strings.TrimSpace(o.name + " " + o.value)
		}
	}
	return r
}

// option returns false, and changes no match, for an unknown option.
func (r *Rule) option(o saveOption) (known bool) {
	switch o.name {
	case "-m":
		return modules[o.value] && !o.not
	case "-i":
		r.In = Device{o.value, o.not}
	case "-o":
		r.Out = Device{o.value, o.not}
	case "-s":
		r.Src.Prefix, known = parseNet(o.value)
		r.Src.Not = o.not
		return known
	case "-d":
		r.Dst.Prefix, known = parseNet(o.value)
		r.Dst.Not = o.not
		return known
	case "-p":
		return r.protocol(o)
	case "--dport":
		r.Ports, known = parsePorts(o.value)
		r.Ports.Not = o.not
		return known
	case "--src-type":
		r.SrcLocal, known = typeOf(o)
		return known
	case "--dst-type":
		r.DstLocal, known = typeOf(o)
		return known
	case "--limit-iface-in", "--limit-iface-out": // the address type is then compared at one device
		r.SrcLocal, r.DstLocal = Any, Any
		return false
	case "-j":
		r.target(o.value)
	case "-g":
		r.Verdict, r.Chain = Goto, o.value
	case "--to-destination":
		r.To, known = parseTo(o.value)
		return known
	case "--to-ports":
		n, err := strconv.ParseUint(o.value, 10, 16)
		r.To = netip.AddrPortFrom(r.To.Addr(), uint16(n))
		return err == nil
	default:
		l, known := parseConntrack(o)
		if known {
			r.Sets = append(r.Sets, l)
		}
		return known
	}
	return true
}

func (r *Rule) protocol(o saveOption) (known bool) {
	n, known := protocolNumber(o.value)
	switch {
	case o.value == "all" || o.value == "0":
		return !o.not
	case o.not && !known:
		return false
	case o.not:
		r.Sets = append(r.Sets, Is(Protocol, Only([]byte{n}), true))
		return true
	}
	r.Proto = o.value
	for name, number := range numbers {
		if known && number == n && name != "ipv6-icmp" {
			r.Proto = name
		}
	}
	return true
}

func protocolNumber(s string) (byte, bool) {
	if n, ok := numbers[s]; ok {
		return n, true
	}
	n, err := strconv.ParseUint(s, 10, 8)
	return byte(n), err == nil
}

// typeOf takes types of several machines for neither Own nor Foreign.
func typeOf(o saveOption) (Local, bool) {
	is := map[string][2]Local{"LOCAL": {Own, Foreign}, "UNICAST": {Foreign, Own},
		"BROADCAST": {NoOnes, Any}, "MULTICAST": {NoOnes, Any}, "ANYCAST": {NoOnes, Any}}
	both, known := is[o.value]
	if o.not {
		return both[1], known
	}
	return both[0], known
}

func (r *Rule) target(name string) {
	known := map[string]Verdict{"ACCEPT": Accept, "DROP": Drop, "REJECT": Reject, "RETURN": Return,
		"DNAT": DNAT, "REDIRECT": DNAT,
		"MASQUERADE": Masquerade, "SNAT": Masquerade}
	r.Marks = Marks(name)
	switch v, ok := known[name]; {
	case ok:
		r.Verdict = v
	case !PassesOn(name): // or, if it does not exist, another target
		r.Verdict, r.Chain = Jump, name
	}
}

// PassesOn reports whether a target of iptables leaves a packet's destination and verdict alone.
func PassesOn(target string) bool {
	return slices.Contains([]string{"LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "MARK", "CONNMARK",
		"SECMARK", "CONNSECMARK", "CLASSIFY", "CHECKSUM",
		"TCPMSS", "TCPOPTSTRIP", "DSCP", "TOS", "ECN", "TTL", "HL", "SET", "RATEEST", "IDLETIMER",
		"LED"}, target)
}

// Marks reports whether a target of iptables may set a packet's mark.
func Marks(target string) bool { return target == "MARK" || target == "CONNMARK" }

func parseNet(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// parsePorts parses "80" or "80:90".
func parsePorts(s string) (Ports, bool) {
	low, high, isRange := strings.Cut(s, ":")
	if !isRange {
		high = low
	}
	a, errA := strconv.ParseUint(low, 10, 16)
	b, errB := strconv.ParseUint(high, 10, 16)
	if errA != nil || errB != nil || b == 0 {
		return Ports{}, false
	}
	return Ports{Low: uint16(a), High: uint16(b)}, true
}

// parseTo parses 172.17.0.2:80, [fd00::2]:80 or an address, but no range.
func parseTo(s string) (netip.AddrPort, bool) {
	if to, err := netip.ParseAddrPort(s); err == nil {
		return to, true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return netip.AddrPortFrom(a, 0), err == nil
}
