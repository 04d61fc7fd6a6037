package firewall

import (
	"net/netip"
	"strconv"
	"strings"
)

// ParseSave parses the output of iptables-save, or of ip6tables-save if six. It skips unknown
// lines.
func ParseSave(text string, six bool) (out []Chain) {
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
			at[f[0]] = len(out)
			out = append(out, Chain{V4: !six, V6: six, Table: table, Name: f[0],
				Drop: f[1] == "DROP"})
		case strings.HasPrefix(line, "-A "):
			words := saveWords(line)
			if len(words) < 2 {
				continue
			}
			if i, ok := at[words[1]]; ok {
				out[i].Rules = append(out[i].Rules, ParseRule(words[2:]))
			}
		}
	}
	return out
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

// harmless lists options that do not affect what a rule matches. The value is true if they take an
// argument.
var harmless = map[string]bool{"--comment": true, "--reject-with": true, "--set-mark": true,
	"--set-xmark":  true,
	"--log-prefix": true, "--log-level": true, "--to-source": true, "--persistent": false,
	"--random": false, "--random-fully": false}

// modules lists modules that have no effect without options.
var modules = map[string]bool{"tcp": true, "udp": true, "sctp": true, "conntrack": true,
	"state": true, "addrtype": true, "comment": true,
	"set": true, "multiport": true, "mark": true, "connmark": true, "limit": true, "iprange": true}

type saveOption struct {
	name, value string
	not         bool
}

func (o saveOption) String() string {
	s := strings.TrimSpace(o.name + " " + o.value)
	if o.not {
		s = "! " + s
	}
	return s
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
		known := r.option(o)
		twice := seen[o.name] && o.name != "-m"
		seen[o.name] = true
		if (!known || twice) && r.Unread == "" {
			r.Unread = o.String()
		}
	}
	return r
}

// option applies an option to the rule. It returns false for an unknown option.
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
		if o.not {
			return false
		}
		r.Proto = o.value
	case "--dport":
		r.Ports, known = parsePorts(o.value)
		r.Ports.Not = o.not
		return known
	case "--src-type":
		if known = o.value == "LOCAL"; known {
			r.SrcLocal = Owner(o.not)
		}
		return known
	case "--dst-type":
		if known = o.value == "LOCAL"; known {
			r.DstLocal = Owner(o.not)
		}
		return known
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
		return false
	}
	return true
}

// Owner returns Own or, with not, Foreign.
func Owner(not bool) Local {
	if not {
		return Foreign
	}
	return Own
}

func (r *Rule) target(name string) {
	known := map[string]Verdict{"ACCEPT": Accept, "DROP": Drop, "REJECT": Reject, "RETURN": Return,
		"DNAT": DNAT, "REDIRECT": DNAT,
		"MASQUERADE": Masquerade, "SNAT": Masquerade}
	var ok bool
	if r.Verdict, ok = known[name]; !ok {
		r.Verdict, r.Chain = Jump, name
	}
}

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

// parseTo parses 172.17.0.2:80, [fd00::2]:80 or an address. ok is false for a range.
func parseTo(s string) (netip.AddrPort, bool) {
	if to, err := netip.ParseAddrPort(s); err == nil {
		return to, true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return netip.AddrPortFrom(a, 0), err == nil
}
