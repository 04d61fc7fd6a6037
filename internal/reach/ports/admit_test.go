package ports

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// candidatesFor returns the commands for a loss of other machines' packets to the web server or,
// if port is 22, to sshd. "(tried as …)" follows those that are tried as another one.
func candidatesFor(f *Facts, port uint16, lost replica.Lost, texts ...replica.RuleText) (
	out []string) {
	try(f, port, func(q replica.Dial, a *replica.Answer) {
		if q.Card == "" || q.Proto != "tcp" || !q.To.Addr().Is4() {
			return
		}
		steps := a.Steps
		lose(q, a, lost)
		a.Steps, a.Outcomes[0].Source = steps, q.Source
		if a.Lost != nil && a.Lost.Rule != nil && port == 8080 {
			a.Lost.Dst = addrPort("172.17.0.2:80")
		}
	})
	spaces := f.Copy.Machine.Spaces
	spaces[0].Text = texts
	spaces[0].Sysctls = map[string]string{"net/ipv4/ip_forward": "1",
		"net/ipv4/conf/docker0/rp_filter": "1"}
	if all := f.Copy.Losing(false); len(all) > 0 {
		i := all[0]
		for _, x := range f.Copy.Candidates(i) {
			text := x.Text
			if x.As != "" {
				text += " (tried as " + x.As + ")"
			}
			out = append(out, text)
		}
	}
	return out
}

func TestCandidatesOfRules(t *testing.T) {
	const to = " -d 172.17.0.2 -p tcp --dport 80 -j "
	for _, c := range []struct {
		table, chain string
		number       int
		reply        bool
		port         uint16
		want         []string
	}{
		{"ip filter", "DOCKER-USER", 2, false, 8080, []string{
			"sudo iptables -I DOCKER-USER 2" + to + "RETURN",
			"sudo iptables -I DOCKER-USER 2" + to + "ACCEPT"}},
		{"ip filter", "FORWARD", 0, false, 8080, []string{"sudo iptables -I FORWARD" + to + "ACCEPT"}},
		{"ip filter", "MINE", 3, false, 8080, []string{"sudo iptables -I MINE 3" + to + "ACCEPT"}},
		{"ip raw", "PREROUTING", 1, false, 22, []string{
			"sudo iptables -t raw -I PREROUTING -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT"}},
		{"iptables-legacy filter", "INPUT", 1, false, 22, []string{
			"sudo iptables-legacy -I INPUT -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT"}},
		{"inet own", "forward", 0, false, 8080, []string{
			"sudo nft insert rule inet own forward ip daddr 172.17.0.2 tcp dport 80 accept"}},
		{"inet own", "forward", 4, true, 8080, []string{
			"sudo nft insert rule inet own forward ct state established,related accept",
			"sudo nft insert rule inet own forward ip saddr 172.17.0.2 tcp sport 80 accept"}},
		{"ip filter", "FORWARD", 0, true, 8080, []string{
			"sudo iptables -I FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
			"sudo iptables -I FORWARD -s 172.17.0.2 -p tcp --sport 80 -j ACCEPT"}},
		{"ip filter", "f2b-sshd", 3, false, 22, []string{
			"sudo fail2ban-client set sshd unbanip 203.0.113.1 (tried as sudo iptables -D f2b-sshd 3)"}},
		{"ip filter", "ufw-user-forward", 1, false, 8080, []string{
			"sudo ufw route allow proto tcp from any to 172.17.0.2 port 80 (tried as " +
				"sudo iptables -A ufw-user-forward" + to + "ACCEPT)",
			"sudo iptables -I ufw-user-forward 1" + to + "ACCEPT"}},
		{"ip filter", "ufw-reject-input", 1, false, 22, []string{
			"sudo ufw allow 22/tcp (tried as sudo iptables -A ufw-user-input -p tcp --dport 22 -j ACCEPT)",
			"sudo iptables -I ufw-reject-input 1 -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT"}},
		{"inet firewalld", "filter_FORWARD_dnat", 1, false, 8080, []string{
			"sudo firewall-cmd --zone=test --add-forward-port=port=8080:proto=tcp:toport=80:" +
				"toaddr=172.17.0.2 (tried as sudo nft insert rule inet firewalld filter_FORWARD_dnat " +
				"meta l4proto tcp ct original proto-dst 8080 accept)"}},
		{"inet firewalld", "filter_IN_public", 9, false, 22, []string{
			"sudo firewall-cmd --zone=public --add-port=22/tcp (tried as sudo nft add rule " +
				"inet firewalld filter_IN_public_allow tcp dport 22 accept)"}},
		{"inet firewalld", "filter_INPUT", 7, false, 22, []string{
			"sudo firewall-cmd --zone=test --add-port=22/tcp (tried as sudo nft add rule " +
				"inet firewalld filter_IN_test_allow tcp dport 22 accept)"}},
		{"inet firewalld", "filter_FORWARD", 7, false, 8080, nil},
		// Names that a shell, nft or iptables would take otherwise are in no command.
		{"ip filter", "MINE;true", 3, false, 8080, nil},
		{"ip filter", "MINE;true", 3, true, 8080, nil},
		{"ip filter", "-MINE", 3, false, 8080, nil},
		{"inet own two", "forward", 4, false, 8080, nil},
		{"inet own", "for ward", 4, true, 8080, nil},
		{"ip filter", "f2b-sshd;true", 3, false, 22, nil},
		{"ip filter", "f2b--h", 3, false, 22, nil},
		{"ip filter", "ufw-user $(true)", 1, false, 22, nil},
		{"inet firewalld", "filter_IN_`true`", 9, false, 22, nil},
	} {
		got := candidatesFor(healthy(), c.port, replica.Lost{Reply: c.reply,
			Rule: rule(c.table, c.chain, c.number, "")},
			replica.RuleText{Table: "inet firewalld", Chain: "filter_INPUT_dispatch", Number: 1,
				Text: `iifname "eth1" goto filter_IN_other`},
			replica.RuleText{Table: "inet firewalld", Chain: "filter_INPUT_dispatch", Number: 2,
				Text: `iifname "eth0" goto filter_IN_test`},
			replica.RuleText{Table: "inet firewalld", Chain: "filter_INPUT_dispatch", Number: 3,
				Text: "goto filter_IN_public"})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s:\n got %q\nwant %q", c.table, c.chain, got, c.want)
		}
	}
}

// firewalld also writes rules of iptables, and replaces them when it is reloaded.
func TestCandidatesOfFirewalldsIptables(t *testing.T) {
	const to = " -d 172.17.0.2 -p tcp --dport 80 -j ACCEPT"
	for _, c := range []struct {
		chain string
		port  uint16
		want  []string
	}{
		{"IN_work_post", 22, []string{"sudo firewall-cmd --zone=work --add-port=22/tcp " +
			"(tried as sudo iptables -A IN_work_allow -p tcp --dport 22 -j ACCEPT)"}},
		{"INPUT", 22, []string{"sudo firewall-cmd --zone=test --add-port=22/tcp " +
			"(tried as sudo iptables -A IN_test_allow -p tcp --dport 22 -j ACCEPT)",
			"sudo iptables -I INPUT -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT"}},
		{"FWD_public", 8080, []string{"sudo firewall-cmd --direct --add-rule ipv4 filter FORWARD 0" +
			to + " (tried as sudo iptables -A FORWARD_direct" + to + ")"}},
		{"IN_`true`", 22, nil},
		{"MINE", 22, []string{"sudo iptables -I MINE 6 -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT"}},
	} {
		got := candidatesFor(healthy(), c.port, replica.Lost{Rule: rule("ip filter", c.chain, 6, "")},
			replica.RuleText{Table: "ip filter", Chain: "INPUT_ZONES", Number: 1,
				Text: "-A INPUT_ZONES -i eth1 -g IN_other"},
			replica.RuleText{Table: "ip filter", Chain: "INPUT_ZONES", Number: 2,
				Text: "-A INPUT_ZONES -i eth0 -g IN_test"},
			replica.RuleText{Table: "ip filter", Chain: "INPUT_ZONES", Number: 3,
				Text: "-A INPUT_ZONES -g IN_public"})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.chain, got, c.want)
		}
	}
}

func TestCandidatesWithoutRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		lost   replica.Lost
		port   uint16
		client string
		want   []string
	}{
		{"one card", replica.Lost{Why: replica.NotForwarded, Device: "eth0"}, 8080, "", []string{
			"sudo sysctl -w net.ipv4.conf.eth0.forwarding=1", "sudo sysctl -w net.ipv4.ip_forward=1"}},
		{"a container's answer", replica.Lost{Why: replica.ReplyElsewhere, Reply: true,
			Device: "tun0"}, 8080, "", []string{
			"sudo ip rule add pref 1 iif docker0 lookup main",
			"sudo ip rule add pref 1 from 172.17.0.0/16 lookup main"}},
		{"an own answer", replica.Lost{Why: replica.NoRoute, Reply: true}, 22, "", []string{
			"sudo ip rule add pref 1 from 198.18.0.1 lookup main"}},
		{"to a known client", replica.Lost{Why: replica.ReplyElsewhere, Reply: true,
			Device: "tun0"}, 22, "203.0.113.9", []string{
			"sudo ip rule add pref 1 from 198.18.0.1 lookup main",
			"sudo ip rule add pref 1 to 203.0.113.9/32 lookup main"}},
		{"no route", replica.Lost{Why: replica.NoRoute}, 8080, "", []string{
			"sudo ip rule add pref 1 to 172.17.0.0/16 lookup main"}},
		{"rp_filter", replica.Lost{Why: replica.ReversePath, Device: "eth0.7"}, 22, "", []string{
			"sudo sysctl -w net.ipv4.conf.eth0/7.rp_filter=2",
			"sudo sysctl -w net.ipv4.conf.eth0/7.rp_filter=0 net.ipv4.conf.all.rp_filter=0"}},
		{"a device's odd name", replica.Lost{Why: replica.ReversePath, Device: "eth;0"}, 22, "", nil},
		{"another", replica.Lost{Why: replica.Localnet, Device: "a&b"}, 8080, "", nil},
		{"a third", replica.Lost{Why: replica.NotForwarded, Device: "a'b"}, 8080, "", []string{
			"sudo sysctl -w net.ipv4.ip_forward=1"}},
		{"localnet", replica.Lost{Why: replica.Localnet, Device: "docker0"}, 8080, "", []string{
			"sudo sysctl -w net.ipv4.conf.docker0.route_localnet=1"}},
		{"localnet, in the container", replica.Lost{Space: 1, Why: replica.Localnet}, 8080, "",
			[]string{"sudo iptables -t nat -I POSTROUTING -o docker0 -m addrtype --src-type LOCAL " +
				"-j MASQUERADE"}},
		{"elsewhere", replica.Lost{Why: replica.Leaves, Device: "tun0"}, 8080, "", []string{
			"sudo ip rule add pref 1 to 172.17.0.0/16 lookup main"}},
		{"untranslated", replica.Lost{Why: replica.ReplyUnnatted, Reply: true}, 8080, "", []string{
			"sudo iptables -t nat -I POSTROUTING -d 172.17.0.2 -p tcp --dport 80 -j MASQUERADE"}},
	} {
		f := healthy()
		if c.client != "" {
			f.Client = addr(c.client)
		}
		if got := candidatesFor(f, c.port, c.lost); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
	f := healthy()
	f.Devices[3].Master = ""
	got := candidatesFor(f, 8080, replica.Lost{Why: replica.NoNeighbour})
	if want := []string{"sudo ip link set veth1 master docker0 up"}; !slices.Equal(got, want) {
		t.Errorf("off its bridge: %q", got)
	}
}

// Other machines and containers are blocked, the latter by another rule, too.
func blockedTwice() (*Facts, *Copy) {
	f := healthy()
	try(f, 22, func(q replica.Dial, a *replica.Answer) {
		switch {
		case q.Proto != "tcp":
		case q.Card != "":
			lose(q, a, replica.Lost{Rule: rule("ip filter", "MINE", 2, "")})
		case q.Bridge != "":
			lose(q, a, replica.Lost{Rule: rule("ip filter", "INPUT", 0, "")})
		}
	})
	return f, f.Copy
}

func (c *Copy) losing(kind Client) int {
	all := c.Losing(false)
	return all[slices.IndexFunc(all, func(i int) bool { return c.asked[i].kind == kind })]
}

// through returns the answers to all connections if those of some clients get to the server.
func through(c *Copy, who func(replica.Dial) bool) (out []replica.Answer) {
	for i, d := range c.AllDials() {
		a := c.asked[i].answer
		if d.Proto == "tcp" && d.To.Addr().Is4() && who(d) {
			a = answer(0, d, "")
		}
		out = append(out, a)
	}
	return out
}

func TestAdmitted(t *testing.T) {
	f, c := blockedTwice()
	i := c.Losing(false)[0]
	if c.asked[i].kind != Remote || c.Settled(i) {
		t.Fatalf("%+v", c.asked[i])
	}
	here := func(d replica.Dial) bool { return d.Card+d.Bridge == "" }
	all := through(c, func(d replica.Dial) bool { return !here(d) })
	c.Admitted(i, c.Candidates(i)[:1], 3, c.Effect(all))
	for _, j := range c.Losing(false) {
		if remote := c.asked[j].kind == Remote; c.Settled(j) != remote { // others have another cause
			t.Errorf("%+v", c.asked[j])
		}
	}
	p := find(t, Judge(f, 22), "0.0.0.0", 22).Paths[Remote]
	if p.Remedy != "sudo iptables -I MINE 2 -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT "+
		"(tried in a copy)" || p.Trial.Rejected != 3 || len(p.Trial.Opens) != 1 ||
		p.Trial.Opens[0] != "22/tcp to a container on bridge" || len(p.Trial.Closes) > 0 {
		t.Errorf("%+v", p.Trial)
	}
	_, c = blockedTwice()
	lost := slices.Clone(all)
	for j, d := range c.AllDials() {
		if here(d) {
			lose(d, &lost[j], replica.Lost{})
		}
	}
	c.Admitted(i, c.Candidates(i)[:1], 0, c.Effect(lost))
	if got := c.asked[i].trial.Closes; !slices.Equal(got, []string{"22/tcp to this machine"}) {
		t.Errorf("closes %q", got)
	}
}

// A client whose packets are lost elsewhere may be admitted, too, but is tried by itself.
func TestAdmittedBesides(t *testing.T) {
	_, c := blockedTwice()
	i, j := c.losing(Remote), c.losing(Neighbour)
	everybody := through(c, func(replica.Dial) bool { return true })
	c.Admitted(i, []Command{{Text: "sudo a"}, {Text: "sudo b"}}, 0, c.Effect(everybody))
	if !c.Settled(i) || c.Settled(j) {
		t.Fatalf("%v %v", c.asked[i].trial, c.asked[j].trial)
	}
	c.Rejected(j, 1)
	if p, _ := c.path(c.asked[j]); p.Remedy != "sudo a; sudo b (tried in a copy)" {
		t.Errorf("%q", p.Remedy)
	}
	c.Admitted(j, []Command{{Text: "sudo c"}}, 0, c.Effect(everybody))
	if p, _ := c.path(c.asked[j]); p.Remedy != "sudo c (tried in a copy)" {
		t.Errorf("fewer commands: %q", p.Remedy)
	}
	_, c = blockedTwice()
	c.Admitted(i, c.Candidates(j), 0, c.Effect(everybody))
	if !c.Settled(j) {
		t.Error("a candidate of its own admits it")
	}
}

func TestRejected(t *testing.T) {
	f, c := blockedTwice()
	c.Rejected(c.Losing(false)[0], 2)
	r := judged(f, 22)
	p := find(t, r, "0.0.0.0", 22).Paths[Remote]
	if p.Remedy != "" || p.Trial == nil || p.Trial.Rejected != 2 {
		t.Errorf("%+v", p)
	}
	if want := "From other machines, 22/tcp is blocked: lost dropped filter MINE 2.\n" +
		"Two commands were tried in a copy, and none admits them."; !slices.Contains(r.Answer.Text,
		want) {
		t.Errorf("%q", r.Answer.Text)
	}
	_, c = blockedTwice()
	i := c.Losing(false)[0]
	c.Unfinished(i, 1, c.Candidates(i), "too slow")
	if p, _ := c.path(c.asked[i]); p.Trial.how() != "(not tried: too slow)" || p.Trial.Rejected != 1 {
		t.Errorf("%+v", p.Trial)
	}
}

// A rule that a command inserted does not make the dropping rule another one.
func TestFurther(t *testing.T) {
	_, c := blockedTwice()
	i := c.Losing(false)[0]
	done := c.Candidates(i)[:1]
	lost := func(number int, chain string) replica.Answer {
		return replica.Answer{Outcomes: []replica.Outcome{{Got: replica.Timeout, Socket: -1}},
			Lost: &replica.Lost{Rule: rule("ip filter", chain, number, "")}}
	}
	seen := []any{c.Place(i)}
	if next, _ := c.Further(i, done, lost(3, "MINE"), seen); next != nil {
		t.Errorf("the same rule: %v", next)
	}
	next, place := c.Further(i, done, lost(4, "MINE"), seen)
	if len(next) != 1 || next[0].Text !=
		"sudo iptables -I MINE 4 -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT" {
		t.Errorf("the next rule: %v", next)
	}
	if again, _ := c.Further(i, done, lost(4, "MINE"), append(seen, place)); again != nil {
		t.Errorf("back again: %v", again)
	}
}

// A remedy for an address that stands for any must admit others.
func TestWitnesses(t *testing.T) {
	f, c := blockedTwice()
	sources := func(i int) (out []netip.Addr) {
		for _, d := range c.DialsOf(i) {
			out = append(out, d.Source)
		}
		return out
	}
	for _, i := range c.Losing(false) {
		want := 1
		if c.asked[i].router {
			want = 3
		}
		if got := sources(i); len(got) != want {
			t.Errorf("%+v: %v", c.asked[i].place, got)
		}
	}
	f.Client = addr("203.0.113.1")
	if got := sources(c.Losing(false)[0]); len(got) != 1 {
		t.Errorf("the user's client: %v", got)
	}
}

// If copies in which doubtful rules match never and always differ, nothing is certain.
func TestThroughCopies(t *testing.T) {
	_, c := blockedTwice()
	i := c.Losing(false)[0]
	d := c.DialsOf(i)[0]
	good := answer(0, d, "")
	differ := good
	differ.Outcomes = append(slices.Clone(good.Outcomes),
		replica.Outcome{Got: replica.Timeout, Socket: -1})
	if !c.Through(i, good) || c.Through(i, differ) || c.Through(i, c.asked[i].answer) {
		t.Error("not as expected")
	}
}

// A trap's commands are printed as tried only if they end it.
func TestTrapTried(t *testing.T) {
	f := healthy()
	tapped(f)
	lost := func(q replica.Dial, a *replica.Answer) {
		if q.Bridge == "br1" {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "FORWARD", 0, "")})
		}
	}
	const command = "sudo iptables -I FORWARD -i br1 -o br1 -j ACCEPT"
	const unfilter = "sudo sysctl -w net.bridge.bridge-nf-call-iptables=0"
	ends := func(x TrapTrial) {
		var answers []replica.Answer
		for _, d := range x.Dials {
			answers = append(answers, answer(-1, d, ""))
		}
		f.Copy.TrapTried(x, answers, "")
	}
	fails := func(x TrapTrial) {
		var answers []replica.Answer
		for _, d := range x.Dials {
			a := answer(-1, d, "")
			lost(d, &a)
			answers = append(answers, a)
		}
		f.Copy.TrapTried(x, answers, "")
	}
	unable := func(x TrapTrial) { f.Copy.TrapTried(x, nil, "no program") }
	for want, change := range map[string][2]func(x TrapTrial){
		command + " (tried in a copy); or, if no container network needs it, " + unfilter +
			" (tried in a copy)": {ends, ends},
		"a rule before filter FORWARD; toll's own, tried in a copy, does not help": {fails, fails},
		command + " (not tried: no program); or, if no container network needs it, " + unfilter +
			" (not tried: no program)": {unable, unable},
	} {
		try(f, 0, lost)
		trials := f.Copy.TrapTrials()
		if len(trials) != 2 || len(trials[0].Dials) == 0 || !trials[0].Dials[0].Explain ||
			trials[0].Commands[0].Text != command || trials[1].Commands[0].Text != unfilter {
			t.Fatalf("%+v", trials)
		}
		change[0](trials[0])
		change[1](trials[1])
		if got := Judge(f, 0).Traps; len(got) != 1 || got[0].Remedy != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}
