package firewall

import (
	"net/netip"
	"strconv"
	"strings"
)

// ParseSave reads what iptables-save (or ip6tables-save, if six) printed. Lines
// that it does not know are left out.
func ParseSave(text string, six bool) Rules {
	var out Rules
	table := ""
	at := map[string]int{} // chain -> index in out, of this table
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

// priorities are those that iptables gives its tables.
var priorities = map[string]int{"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}

func savedChain(table, name, policy string, six bool) Chain {
	c := Chain{V4: !six, V6: six, Table: table, Name: name, Kind: Filter, Priority: priorities[table], Drop: policy == "DROP"}
	if table == "nat" {
		c.Kind = NAT
	}
	if policy != "-" {
		c.Hook = Hook(strings.ToLower(name))
	}
	return c
}

// saveWords splits a line at spaces, but not within quotes.
func saveWords(line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		var w string
		if line[0] == '"' {
			if w, line, _ = strings.Cut(line[1:], `"`); w == "" {
				continue
			}
		} else {
			w, line, _ = strings.Cut(line, " ")
		}
		out = append(out, w)
	}
	return out
}

// harmless options have no say in what is matched here.
var harmless = map[string]bool{"-m": true, "--comment": true, "--reject-with": true, "--set-mark": true, "--set-xmark": true,
	"--log-prefix": true, "--log-level": true, "--persistent": true, "--random": true, "--random-fully": true}

// saveOption is an option of a rule and its value.
type saveOption struct {
	name, value string
	not         bool
}

// ParseRule reads a rule's words as iptables-save prints them behind the chain.
func ParseRule(words []string) Rule {
	var r Rule
	for len(words) > 0 {
		o := saveOption{}
		if words[0] == "!" && len(words) > 1 {
			o.not, words = true, words[1:]
		}
		o.name, words = words[0], words[1:]
		if len(words) > 0 && !strings.HasPrefix(words[0], "-") && words[0] != "!" {
			o.value, words = words[0], words[1:]
		}
		if !r.option(o) && !harmless[o.name] && r.Unread == "" {
			r.Unread = strings.TrimSpace(o.name + " " + o.value)
		}
	}
	return r
}

// option puts an option on the rule; false: it is not known.
func (r *Rule) option(o saveOption) (known bool) {
	switch o.name {
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
		r.Proto = o.value
		return !o.not
	case "--dport":
		r.Ports, known = parsePorts(o.value)
		r.Ports.Not = o.not
		return known
	case "--src-type":
		r.SrcLocal = local(o.not)
		return o.value == "LOCAL"
	case "--dst-type":
		r.DstLocal = local(o.not)
		return o.value == "LOCAL"
	case "--ctstate", "--state":
		r.NotNew = strings.Contains(o.value, "NEW") == o.not
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

func local(not bool) Local {
	if not {
		return Other
	}
	return Own
}

func (r *Rule) target(name string) {
	known := map[string]Verdict{"ACCEPT": Accept, "DROP": Drop, "REJECT": Reject, "RETURN": Return, "DNAT": DNAT, "REDIRECT": DNAT,
		"MASQUERADE": Masquerade, "SNAT": Masquerade, "LOG": Continue, "MARK": Continue, "CONNMARK": Continue, "NFLOG": Continue, "CHECKSUM": Continue}
	v, ok := known[name]
	if !ok {
		v, r.Chain = Jump, name
	}
	r.Verdict = v
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

// parsePorts reads 80 or 80:90.
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

// parseTo reads where DNAT leads: 172.17.0.2:80, [fd00::2]:80 or an address. A
// range of addresses or ports is not understood.
func parseTo(s string) (netip.AddrPort, bool) {
	if to, err := netip.ParseAddrPort(s); err == nil {
		return to, true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return netip.AddrPortFrom(a, 0), err == nil
}
