package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// run returns a command of root's that runs scripts in a namespace, in order. It returns none if no
// process shows how to enter the namespace, or if a shell would take the scripts otherwise.
func (o *outcome) run(space int, scripts ...string) []Command {
	if !forShell(scripts) {
		return nil
	}
	enter := "sudo "
	if space = max(space, 0); space > 0 && space < len(o.c.Machine.Spaces) {
		pid := o.c.Machine.Spaces[space].PID
		if x, ok := o.c.containerIn(space); ok {
			pid = x.PID
		}
		if pid == 0 {
			return nil
		}
		enter = fmt.Sprintf("sudo nsenter -t %d -n ", pid)
	}
	return []Command{{Text: enter + strings.Join(scripts, "; "+enter),
		script: strings.Join(scripts, " && "), space: space}}
}

var plainScript = regexp.MustCompile(`^(?:[\w.@:+/=,-]+|!)(?: (?:[\w.@:+/=,-]+|!))*$`)

// forShell reports whether a shell takes scripts as words separated by blanks, whatever names of
// devices and the like are in them. Those names may have other characters, which are not quoted: no
// such command is offered.
func forShell(scripts []string) bool {
	return !slices.ContainsFunc(scripts, func(s string) bool { return !plainScript.MatchString(s) })
}

// instead returns a command to print, such as a daemon's, in whose place another one is tried.
func instead(printed string, tried []Command) []Command {
	if len(tried) == 0 {
		return nil
	}
	c := tried[0]
	c.As, c.Text = c.Text, printed
	return []Command{c}
}

// sysctl returns the command that sets a sysctl where the packet was lost.
func (o *outcome) sysctl(key, value string) []Command {
	return o.run(o.q.answer.Lost.Space, "sysctl -w "+key+"="+value)
}

// byMain returns the command that adds a policy rule of a family before all others. The rule leads
// the packets that it selects to the main routing table.
func (o *outcome) byMain(six bool, rule string, of any) []Command {
	add := "ip rule add pref 1 "
	if six {
		add = "ip -6 rule add pref 1 "
	}
	return o.run(0, add+fmt.Sprintf(rule, of))
}

func (o *outcome) towards(net netip.Prefix) []Command {
	return o.byMain(net.Addr().Is6(), "to %s lookup main", net.Masked())
}

// table is a table of packet filter rules and the program that changes it.
type table struct {
	program string // "iptables", "ip6tables-legacy", …, or "nft"
	family  string // nft only
	name    string
}

// tableOf returns the table of the rule that dropped the packet.
func (o *outcome) tableOf() table {
	l := o.q.answer.Lost
	full := l.Rule.Table
	program, name, _ := strings.Cut(full, " ")
	switch {
	case strings.HasSuffix(program, "-legacy"):
		return table{program: program, name: name}
	case program != "ip" && program != "ip6" || !slices.Contains(iptables, name),
		o.c.madeByNft(l.Space, full):
		return table{program: "nft", family: program, name: name}
	case program == "ip6":
		return table{program: "ip6tables", name: name}
	}
	return table{program: "iptables", name: name}
}

// madeByNft reports whether a table has base chains that iptables would not make.
func (c *Copy) madeByNft(space int, full string) bool {
	if space < 0 || space >= len(c.Machine.Spaces) {
		return false
	}
	s := c.Machine.Spaces[space].Nft
	return s.HasRules(full) && !slices.Contains(s.Iptables(), full)
}

// accepting returns the command that accepts matching packets in the chain of the rule that dropped
// them, before that rule. iptables and nft are the matches in the program's language.
func (o *outcome) accepting(target, iptables, nft string) []Command {
	l, t := o.q.answer.Lost, o.tableOf()
	var out []Command
	if t.program == "nft" {
		out = o.run(l.Space, fmt.Sprintf("nft insert rule %s %s %s %s %s", t.family, t.name,
			l.Rule.Chain, nft, strings.ToLower(target)))
	} else {
		at := l.Rule.Chain
		if l.Rule.Number > 0 && !slices.Contains(builtinChains, at) {
			at += fmt.Sprintf(" %d", l.Rule.Number)
		}
		of := ""
		if t.name != "filter" {
			of = "-t " + t.name + " "
		}
		out = o.run(l.Space, fmt.Sprintf("%s %s-I %s %s -j %s", t.program, of, at, iptables, target))
	}
	return insertedBefore(out, o.ruleAt())
}

var builtinChains = []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

func insertedBefore(all []Command, at chainAt) []Command {
	for i := range all {
		all[i].inserts = at
	}
	return all
}

func (o *outcome) ruleAt() chainAt {
	l := o.q.answer.Lost
	return chainAt{l.Space, l.Rule.Table, l.Rule.Chain}
}

// afterRule returns the commands that may admit packets which a rule drops, in the order in which
// to try them: those of the program that wrote the rule come first.
func (o *outcome) afterRule(to netip.AddrPort) []Command {
	b, q := o.out.Block, o.q
	jail, banned := strings.CutPrefix(b.Chain, "f2b-")
	if !printable.Bare(o.tableOf().name, q.answer.Lost.Rule.Chain, jail) {
		return nil
	}
	if b.Reply {
		return o.answersThrough(to)
	}
	at := fmt.Sprintf("-d %s -p %s --dport %d", to.Addr(), q.proto, to.Port())
	nft := fmt.Sprintf("%s daddr %s %s dport %d", nftFamily(to.Addr()), to.Addr(), q.proto, to.Port())
	accept := o.accepting("ACCEPT", at, nft)
	six := map[bool]string{true: "6"}[to.Addr().Is6()]
	ufw := strings.HasPrefix(b.Chain, "ufw-") || strings.HasPrefix(b.Chain, "ufw6-")
	switch {
	case banned && o.out.Source != "" && b.Number > 0:
		return instead(fmt.Sprintf("sudo fail2ban-client set %s unbanip %s", jail, o.out.Source),
			o.run(q.answer.Lost.Space, fmt.Sprintf("%s -D %s %d", o.tableOf().program, b.Chain,
				q.answer.Lost.Rule.Number)))
	case strings.HasPrefix(b.Chain, "ufw-docker"), ufw && strings.HasSuffix(b.Chain, "-forward"):
		return append(instead(fmt.Sprintf("sudo ufw route allow proto %s from any to %s port %d",
			q.proto, to.Addr(), to.Port()), o.run(0, fmt.Sprintf("%s -A ufw%s-user-forward %s -j ACCEPT",
			o.tableOf().program, six, at))), accept...)
	case ufw, b.Policy && b.Chain == "INPUT" && o.f.hasUFW(o.c):
		return append(instead(fmt.Sprintf("sudo ufw allow %d/%s", to.Port(), q.proto),
			o.run(0, fmt.Sprintf("%s -A ufw%s-user-input -p %s --dport %d -j ACCEPT",
				o.tableOf().program, six, q.proto, to.Port()))), accept...)
	case strings.HasSuffix(b.Table, " firewalld"):
		return o.inFirewalld(to)
	case o.byFirewalld() && slices.Contains(builtinChains, b.Chain): // or by somebody else
		return append(o.inFirewalldsIptables(to), accept...)
	case o.byFirewalld():
		return o.inFirewalldsIptables(to)
	case b.Chain == "DOCKER-USER":
		return append(o.accepting("RETURN", at, nft), accept...)
	}
	return accept
}

func nftFamily(a netip.Addr) string {
	if a.Is6() {
		return "ip6"
	}
	return "ip"
}

// answersThrough returns the commands that accept a server's answers where a rule drops one.
func (o *outcome) answersThrough(to netip.AddrPort) []Command {
	out := o.accepting("ACCEPT", "-m conntrack --ctstate RELATED,ESTABLISHED",
		"ct state established,related")
	return append(out, o.accepting("ACCEPT",
		fmt.Sprintf("-s %s -p %s --sport %d", to.Addr(), o.q.proto, to.Port()),
		fmt.Sprintf("%s saddr %s %s sport %d", nftFamily(to.Addr()), to.Addr(), o.q.proto,
			to.Port()))...)
}

// inFirewalld returns firewalld's command, which is tried as the rule that firewalld 2.3 writes.
// Its table may belong to its process alone, so no other command is offered.
func (o *outcome) inFirewalld(to netip.AddrPort) []Command {
	b, q, zone := o.out.Block, o.q, o.zone()
	rule := func(format string, a ...any) []Command {
		return o.run(q.answer.Lost.Space, "nft "+fmt.Sprintf(format, a...))
	}
	flag := ""
	if zone != "" && !printable.Bare(zone) {
		return nil
	}
	if zone != "" {
		flag = "--zone=" + zone + " "
	}
	switch {
	case strings.HasSuffix(b.Chain, "_dnat"): // StrictForwardPorts
		return insertedBefore(instead(fmt.Sprintf(
			"sudo firewall-cmd %s--add-forward-port=port=%d:proto=%s:toport=%d:toaddr=%s", flag,
			q.at.Port(), q.proto, to.Port(), to.Addr()),
			rule("insert rule %s %s meta l4proto %s ct original proto-dst %d accept", b.Table,
				b.Chain, q.proto, q.at.Port())), o.ruleAt())
	case strings.HasPrefix(b.Chain, "filter_IN"):
		return instead(fmt.Sprintf("sudo firewall-cmd %s--add-port=%d/%s", flag, to.Port(), q.proto),
			rule("add rule %s filter_IN_%s_allow %s dport %d accept", b.Table,
				cmp.Or(zone, "public"), q.proto, to.Port()))
	}
	return nil
}

// byFirewalld reports whether firewalld may have written the rule with iptables
// (FirewallBackend=iptables). It replaces the rules in these chains when it is reloaded.
func (o *outcome) byFirewalld() bool {
	b, table := o.out.Block, o.q.answer.Lost.Rule.Table
	own := strings.HasPrefix(b.Chain, "IN_") || strings.HasPrefix(b.Chain, "FWD") ||
		b.Chain == "INPUT" || b.Chain == "FORWARD"
	return own && o.q.answer.Lost.Space == 0 && slices.ContainsFunc(o.c.Machine.Spaces[0].Text,
		func(r replica.RuleText) bool { return r.Table == table && r.Chain == "INPUT_ZONES" })
}

// inFirewalldsIptables returns firewalld's command, which is tried as the rule of iptables that
// firewalld 1.3 writes.
func (o *outcome) inFirewalldsIptables(to netip.AddrPort) []Command {
	b, q, zone, program := o.out.Block, o.q, o.zone(), o.tableOf().program
	if strings.HasPrefix(b.Chain, "F") {
		family := map[bool]string{false: "ipv4", true: "ipv6"}[to.Addr().Is6()]
		match := fmt.Sprintf("-d %s -p %s --dport %d -j ACCEPT", to.Addr(), q.proto, to.Port())
		return instead(
			fmt.Sprintf("sudo firewall-cmd --direct --add-rule %s filter FORWARD 0 %s", family, match),
			o.run(0, program+" -A FORWARD_direct "+match))
	}
	if !printable.Bare(zone) {
		return nil
	}
	return instead(
		fmt.Sprintf("sudo firewall-cmd --zone=%s --add-port=%d/%s", zone, to.Port(), q.proto),
		o.run(0, fmt.Sprintf("%s -A IN_%s_allow -p %s --dport %d -j ACCEPT", program, zone, q.proto,
			to.Port())))
}

// zone returns firewalld's zone of the packet, or "" if it is not known. It is in the name of the
// chain that dropped the packet or, for the client's card, in a rule that leads to such a chain.
func (o *outcome) zone() string {
	name := func(chain string) string {
		zone, ok := strings.CutPrefix(strings.TrimPrefix(chain, "filter_"), "IN_")
		for _, end := range []string{"_pre", "_log", "_deny", "_allow", "_post"} {
			zone = strings.TrimSuffix(zone, end)
		}
		if !ok || strings.HasPrefix(zone, "policy_") {
			return ""
		}
		return zone
	}
	b, card := o.out.Block, cmp.Or(o.q.client.Card, o.q.client.Bridge)
	if zone := name(b.Chain); zone != "" || len(o.c.Machine.Spaces) == 0 {
		return zone
	}
	other := ""
	for _, r := range o.c.Machine.Spaces[0].Text {
		words := strings.Fields(r.Text)
		if r.Table != o.q.answer.Lost.Rule.Table || len(words) == 0 ||
			!strings.HasPrefix(strings.TrimPrefix(r.Chain, "filter_"), "INPUT_") {
			continue
		}
		zone := name(words[len(words)-1])
		at := max(slices.Index(words, "iifname"), slices.Index(words, "-i")) + 1
		switch {
		case zone == "":
		case at > 0 && strings.Trim(words[at], `"`) == card:
			return zone
		case at == 0:
			other = zone
		}
	}
	return other
}

func (f *Facts) hasUFW(c *Copy) bool {
	return len(c.Machine.Spaces) > 0 && slices.ContainsFunc(c.Machine.Spaces[0].Text,
		func(r replica.RuleText) bool { return strings.HasPrefix(r.Chain, "ufw-") })
}

// forwarding returns the commands after which packets are forwarded. key is the setting that is
// off.
func (o *outcome) forwarding(key string, six bool) []Command {
	out := o.sysctl(key, "1")
	others := []string{"net.ipv4.ip_forward"}
	if d := o.q.answer.Lost.Device; d != "" && !six {
		others = append(others, "net.ipv4.conf."+sysctlName(d)+".forwarding")
	}
	for _, other := range others {
		if !six && other != key {
			out = append(out, o.sysctl(other, "1")...)
		}
	}
	return out
}

// sysctlName returns a device's name as it is in a sysctl's.
func sysctlName(device string) string { return strings.ReplaceAll(device, ".", "/") }

// looser returns the commands that let packets through rp_filter at a device: for sources that
// another device leads to, then for any. The kernel uses the larger value of the device's and of
// all's; 2 is the loose one.
func (o *outcome) looser(space int, device string) []Command {
	if device == "" {
		return nil
	}
	name := sysctlName(device)
	return append(o.run(space, fmt.Sprintf("sysctl -w net.ipv4.conf.%s.rp_filter=2", name)),
		o.run(space, fmt.Sprintf(
			"sysctl -w net.ipv4.conf.%s.rp_filter=0 net.ipv4.conf.all.rp_filter=0", name))...)
}

// routeBack returns the commands that route answers back to the client by the main table. The first
// ones do not name the client, whose address may stand for any.
func (o *outcome) routeBack(to netip.AddrPort) (out []Command) {
	if o.q.answer.Lost.Space != 0 {
		return nil
	}
	six := to.Addr().Is6()
	if c, ok := o.f.at(to.Addr()); ok {
		if bridge := o.f.bridgeAt(c, to.Addr()); bridge != "" {
			out = o.byMain(six, "iif %s lookup main", bridge)
			if net, ok := o.f.prefixOn(bridge, six); ok {
				out = append(out, o.byMain(six, "from %s lookup main", net.Masked())...)
			}
		}
	}
	if own := to.Addr(); o.f.own(own) && !own.IsLoopback() {
		out = append(out, o.byMain(six, "from %s lookup main", own)...)
	}
	source, err := netip.ParseAddr(o.out.Source)
	if err != nil {
		return out
	}
	net := netip.PrefixFrom(source, source.BitLen())
	known := o.f.Client == source
	for _, device := range []string{o.bridge(), o.q.client.Card} {
		if p, ok := o.f.prefixOn(device, source.Is6()); ok && p.Contains(source) {
			net, known = p, true
			break
		}
	}
	if known {
		out = append(out, o.towards(net)...)
	}
	return out
}

// masquerade returns the command that gives matching packets this machine's address.
func (o *outcome) masquerade(match string, six bool) []Command {
	program := "iptables"
	if six {
		program = "ip6tables"
	}
	for _, t := range o.c.Machine.Spaces[0].Legacy {
		if t.Table() == program+"-legacy nat" {
			program += "-legacy"
		}
	}
	return o.run(0, program+" -t nat -I POSTROUTING "+match+" -j MASQUERADE")
}
