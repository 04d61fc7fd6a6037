package ports

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func TestTry(t *testing.T) {
	drop := losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 1, "-j DROP")})
	masquerade := func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" && q.To.Port() == 8080 {
			a.Outcomes[0].Source, a.Outcomes[0].Seen = addr("198.18.0.9"), addr("172.17.0.1")
		}
	}
	two := func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" {
			lose(q, a, replica.Lost{})
			a.Unsure = []string{"a rule matches by user"}
		}
	}
	perhaps := func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" {
			a.Unsure = []string{"a limit"}
		}
	}
	inner := func(q replica.Dial, a *replica.Answer) {
		if q.Bridge != "" && q.To.Port() == 22 {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "INPUT", 1, "-j DROP")})
		}
	}
	all := losing("machine container 127.0.0.1 ::1 172.17.0.1 192.0.2.10 172.17.0.2 198.18.0.1",
		replica.Lost{Rule: rule("ip filter", "INPUT", 1, "-j DROP")})
	fewer := healthy()
	fewer.Listeners[0].Owners[0].Name = "other"
	open, shut := func() *Report { return try(healthy(), 0) },
		func() *Report { return try(healthy(), 0, drop) }
	const noUsers = "A copy has no user but root, and there iptables and ip take no rule by another one " +
		"(-m owner, uidrange), although they would on this machine. Rules of nft (meta skuid) can be tried."
	for name, c := range map[string]struct {
		before, after *Report
		out           replica.Output
		want          []string
	}{
		"nothing": {open(), open(), replica.Output{}, []string{
			"Nobody would gain or lose a port.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 15 of 15 " +
				"connections would be as before."}},
		"lost": {open(), shut(), replica.Output{}, []string{
			"Other machines would lose 22/tcp (sshd) and 8080/tcp (web:80): lost dropped filter INPUT " +
				"1 -j DROP.",
			"Nobody would gain a port.",
			"Other machines would keep no port. 11 of 15 connections would be as before."}},
		"gained": {shut(), open(), replica.Output{}, []string{
			"Other machines would gain 22/tcp (sshd) and 8080/tcp (web:80): before, lost dropped filter " +
				"INPUT 1 -j DROP.",
			"Nobody would lose a port.",
			"Other machines would keep no port. 11 of 15 connections would be as before."}},
		"at one address": {open(), try(healthy(), 0, losing("127.0.0.1", replica.Lost{})),
			replica.Output{}, []string{
				"This machine would lose 22/tcp (sshd) and 8080/tcp (web:80) at 127.0.0.1: lost no-reason.",
				"Nobody would gain a port.",
				"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 13 of 15 " +
					"connections would be as before."}},
		"failed": {open(), open(), replica.Output{Code: 3, Modules: []string{"xt_a", "xt_b"}}, []string{
			"The commands failed with exit code 3. What follows is what they changed nevertheless.",
			"Nobody would gain or lose a port.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 15 of 15 " +
				"connections would be as before.",
			"The kernel of this machine loaded modules meanwhile, perhaps for the commands: xt_a, xt_b."}},
		"by owner": {open(), open(), replica.Output{Code: 4, Text: "RULE_APPEND failed (Invalid " +
			"argument): -A OUTPUT -m owner --uid-owner 7"}, []string{
			"The commands failed with exit code 4. What follows is what they changed nevertheless.",
			noUsers,
			"Nobody would gain or lose a port.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 15 of 15 " +
				"connections would be as before."}},
		"by user, in the middle": {open(), open(), replica.Output{Text: "RTNETLINK answers: Invalid " +
			"argument\nuidrange\n"}, []string{noUsers, "Nobody would gain or lose a port.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 15 of 15 " +
				"connections would be as before."}},
		"too long": {open(), open(), replica.Output{Code: 124, TimedOut: true}, []string{
			"The commands did not end in time, and were stopped. What follows is what they changed " +
				"until then.",
			"Nobody would gain or lose a port.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 15 of 15 " +
				"connections would be as before."}},
		"another address": {open(), try(healthy(), 0, masquerade), replica.Output{}, []string{
			"Nobody would gain or lose a port.",
			"8080/tcp (web:80) from other machines: seen-as 172.17.0.1.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 13 of 15 " +
				"connections would be as before."}},
		"the own address": {try(healthy(), 0, masquerade), open(), replica.Output{}, []string{
			"Nobody would gain or lose a port.",
			"8080/tcp (web:80) from other machines: seen-itself.",
			"Other machines would still reach 22/tcp (sshd) and 8080/tcp (web:80). 13 of 15 " +
				"connections would be as before."}},
		"another server": {open(), try(fewer, 0), replica.Output{}, []string{
			"Nobody would gain or lose a port.",
			"22/tcp (other) from other machines, a container on bridge and this machine: " +
				"other-server other sshd.",
			"Other machines would still reach 22/tcp (other) and 8080/tcp (web:80). 8 of 15 " +
				"connections would be as before."}},
		"one of two copies": {open(), try(healthy(), 0, two), replica.Output{}, []string{
			"Nobody would gain or lose a port for certain.",
			"Other machines may still reach 22/tcp (sshd) and 8080/tcp (web:80). 11 of 15 connections " +
				"would be as before; 4 not certain: uncopied a rule matches by user."}},
		"answered, but not for certain": {open(), try(healthy(), 0, perhaps), replica.Output{}, []string{
			"Nobody would gain or lose a port for certain.",
			"Other machines may still reach 22/tcp (sshd) and 8080/tcp (web:80). 11 of 15 connections " +
				"would be as before; 4 not certain: uncopied a limit."}},
		"as uncertain as before": {try(healthy(), 0, perhaps), try(healthy(), 0, perhaps),
			replica.Output{}, []string{
				"Nobody would gain or lose a port.",
				"Other machines may still reach 22/tcp (sshd) and 8080/tcp (web:80). 15 of 15 connections " +
					"would be as before."}},
		"containers, too": {open(), try(healthy(), 0, drop, inner), replica.Output{}, []string{
			"Other machines and a container on bridge would lose 22/tcp (sshd): lost dropped filter INPUT " +
				"1 -j DROP.",
			"Other machines would lose 8080/tcp (web:80): lost dropped filter INPUT 1 -j DROP.",
			"Nobody would gain a port.",
			"Other machines would keep no port. A container on bridge and this machine would " +
				"still reach 8080/tcp (web:80). 9 of 15 connections would be as before."}},
		"one port": {try(healthy(), 8080), try(healthy(), 8080, drop), replica.Output{}, []string{
			"Other machines would lose 8080/tcp (web:80): lost dropped filter INPUT 1 -j DROP.",
			"Nobody would gain a port.",
			"A container on bridge and this machine would still reach 8080/tcp (web:80). 6 of 8 " +
				"connections would be as before."}},
		"one port, at one address": {try(healthy(), 8080), try(healthy(), 8080,
			losing("127.0.0.1", replica.Lost{Why: replica.NoRoute})), replica.Output{}, []string{
			"This machine would lose 8080/tcp (web:80) at 127.0.0.1: lost no-route 127.0.0.1.",
			"Nobody would gain a port.",
			"Other machines and a container on bridge would still reach 8080/tcp (web:80). This machine " +
				"would still reach 8080/tcp (web:80) at 198.18.0.1, 172.17.0.1 and ::1. 7 of 8 " +
				"connections would be as before."}},
		"one port, no client": {try(healthy(), 8080), try(healthy(), 8080, drop, all),
			replica.Output{}, []string{
				"Other machines, a container on bridge and this machine would lose 8080/tcp (web:80): " +
					"lost dropped filter INPUT 1 -j DROP.",
				"Nobody would gain a port.",
				"No client would reach it. 0 of 8 connections would be as before."}},
	} {
		c.after.Try(c.before, NewTried("true", c.out, nil, nowhere))
		c.after.Say(coded{})
		if diff := cmp.Diff(c.want, c.after.Tried.Text(c.after.Changes)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestTriedLines(t *testing.T) {
	tried := NewTried("", replica.Output{Text: "a\x1b[2J\nb\n"}, nil, nowhere)
	if got := tried.Lines(); !slices.Equal(got, []string{`a\x1b[2J`, "b"}) {
		t.Errorf("%q", got)
	}
	tried = NewTried("", replica.Output{Text: "a\n" + strings.Repeat("é", 1<<15) + "\n"}, nil, nowhere)
	if got := tried.Lines(); got[0] != "a" || got[1] != strings.Repeat("é", mostRunes)+"…" {
		t.Errorf("%q", got)
	}
}

// Programs of which a copy does not show what they change are named.
func TestTriedPrograms(t *testing.T) {
	for _, c := range []struct {
		commands, output string
		notFound         []string
		daemons          []string
	}{
		{"iptables -P INPUT DROP", "sh: a warning\n", nil, nil},
		{"nft -f rules; ipset list", "sh: 1: eval: nft: not found\nsh: 1: eval: ipset: not found\n" +
			"sh: 2: eval: nft: not found\n", []string{"nft", "ipset"}, nil},
		{"nft -f rules", "sh: line 1: nft: command not found\n", []string{"nft"}, nil},
		{"./all.sh", "./all.sh: 3: nft: not found\n", []string{"nft"}, nil},
		{"sudo nft", "/run/toll/bin/sudo: 11: exec: nft: not found\n", []string{"nft"}, nil},
		{"docker stop web && sudo systemctl restart docker; (podman ps)\nfirewall-cmd --reload", "", nil,
			[]string{"docker", "systemctl", "podman", "firewall-cmd"}},
		{"iptables -A DOCKER-USER -m comment --comment docker -j DROP; cat docker", "", nil, nil},
		{"if ! docker info; then podman ps; else systemctl stop x; fi", "", nil,
			[]string{"docker", "podman", "systemctl"}},
		{"for n in a b; do service $n stop; done;virsh list|kubectl apply", "", nil,
			[]string{"service", "virsh", "kubectl"}},
		{"A=1 B= docker ps; sudo -n -u root podman ps; /usr/bin/firewall-cmd --reload\n" +
			"sudo env C=2 /bin/systemctl stop x; x=$(nmcli c)", "", nil,
			[]string{"docker", "podman", "firewall-cmd", "systemctl", "nmcli"}},
		{"timeout 5 docker ps & sudo nsenter -t 1 -n podman ps; sh -c 'nerdctl ps'", "", nil,
			[]string{"docker", "podman", "nerdctl"}},
		{"sudo \\\n  docker ps", "", nil, []string{"docker"}},
		{"sudo sh <<E\ndocker ps\nE\nA=1;B='a b' podman ps", "", nil, []string{"docker", "podman"}},
		{"cat <<EOF >ssh\nservice ssh {\n}\nEOF\nnft -f - <<-'E'\ndocker\n\tE\ntrue", "", nil, nil},
		{"cat <<A\nservice x\nA\ndocker ps; i=$((1<<2))\npodman ps", "", nil,
			[]string{"docker", "podman"}},
		{"docker=br0; ip link set dev docker0 up; ip link show docker", "", nil, nil},
		{"ip link set docker up && nft add table service", "", nil, nil},
	} {
		got := NewTried(c.commands, replica.Output{Text: c.output}, nil, nowhere)
		if !slices.Equal(got.NotFound, c.notFound) || !slices.Equal(got.Daemons, c.daemons) {
			t.Errorf("%s: %q, %q", c.commands, got.NotFound, got.Daemons)
		}
		text := strings.Join(got.Text(&Changes{}), "\n")
		for _, name := range slices.Concat(c.notFound, c.daemons) {
			if !strings.Contains(text, name) {
				t.Errorf("%s: %q is not in %s", c.commands, name, text)
			}
		}
	}
}

func nowhere(string) bool { return false }

// What a copy does not permit or have may make a command fail, also one in the middle.
func TestTriedHindered(t *testing.T) {
	for output, hindered := range map[string]bool{
		"iptables: Bad rule (does a matching rule exist in that chain?).\n":             false,
		"net.ipv4.ip_forward = 1\n":                                                     false,
		"Error: Could not process rule: No such file or directory\ndelete table x\n":    false,
		"sysctl: permission denied on key \"kernel.pid_max\"\n":                         false,
		"sysctl: permission denied on key \"net.netfilter.nf_conntrack_max\"\n":         false,
		"sysctl: cannot stat /proc/sys/net/ipv4/tcp_mem: No such file or directory\n":   false,
		"cat: /root/none: No such file or directory\n":                                  false,
		"sh: 1: cannot open /root/rules.v4: No such file\n":                             true,
		"Can't open /root/rules.v4: No such file or directory\n":                        true,
		"a: Error: Could not open file \"/root/rules.v4\": No such file or directory\n": true,
		"modprobe: ERROR: could not insert 'br_netfilter': Operation not permitted\n":   true,
		"iptables v1.8.9 (nf_tables): host/network `a.example' not found\n":             true,
		"Failed to connect to bus: No such file or directory\n":                         true,
		"System has not been booted with systemd as init system (PID 1).\n":             true,
		"/proc/self/fd/3: line 2: /etc/none: No such file or directory\n":               false,
		"/proc/self/fd/3: line 4: /root/rules.v4: No such file or directory\n":          true,
		"touch: cannot touch '/usr/x': Read-only file system\n":                         true,
	} {
		got := NewTried("true", replica.Output{Text: "one\n" + output + "two\n"}, nil,
			func(name string) bool { return name == "/root/rules.v4" || strings.HasPrefix(name, "/proc/") })
		if line := strings.TrimSpace(output); hindered != slices.Equal(got.Hindered, []string{line}) ||
			hindered != got.Unknown() {
			t.Errorf("%s: %q", output, got.Hindered)
		}
		said := strings.Contains(strings.Join(got.Text(&Changes{}), "\n"), "because it ran in a copy")
		if printed := output != "net.ipv4.ip_forward = 1\n"; said != hindered || got.Complain() != printed {
			t.Errorf("%s: said %t, printed %t", output, said, got.Complain())
		}
	}
}

// A container that moved to a new bridge is dialled at its new address, by containers there.
func TestAfter(t *testing.T) {
	prefix := netip.MustParsePrefix
	device := func(name string, index, master int) link.Saved {
		return link.Saved{Name: name, Index: index, Master: master, Kind: "veth", Up: true, MTU: 1500}
	}
	old := &replica.Machine{Spaces: []replica.Space{{ID: "net:[1]"}, {ID: "net:[2]"}}}
	now := &replica.Machine{Spaces: []replica.Space{
		{ID: "net:[1]", Sysctls: map[string]string{"net/ipv4/ip_forward": "0"}}, {ID: "net:[2]"}}}
	old.Spaces[0].Links = []link.Saved{device("lo", 1, 0), device("eth0", 2, 0),
		device("docker0", 3, 0), device("veth1", 6, 3)}
	now.Spaces[0].Links = append(slices.Clone(old.Spaces[0].Links[:3]), device("veth1", 6, 9),
		link.Saved{Name: "br1", Index: 9, Kind: "bridge", Up: true, MTU: 1400})
	now.Spaces[0].Links[1].Up = false
	old.Spaces[1].Links = []link.Saved{device("eth0", 5, 0)}
	now.Spaces[1].Links = old.Spaces[1].Links
	old.Spaces[1].Addresses = addresses(5, "172.17.0.2/16", "fd00::2/64")
	now.Spaces[1].Addresses = addresses(5, "172.18.0.2/16")
	now.Spaces[0].Addresses = addresses(9, "172.18.0.1/16")
	f := healthy()
	got := f.After(old, now)
	if b := got.device("br1"); b.Kind != "bridge" || b.MTU != 1400 ||
		!slices.Equal(b.Addrs, []netip.Prefix{prefix("172.18.0.1/16")}) {
		t.Errorf("%+v", b)
	}
	if got.device("eth0").Up || got.Switches.Forward4 || got.device("veth1").Master != "br1" {
		t.Errorf("%+v %+v", got.Devices, got.Switches)
	}
	web := got.Containers[0]
	if !slices.Equal(web.Addrs, []netip.Addr{addr("172.18.0.2")}) || got.bridgeOf(web) != "br1" ||
		got.network(got.device("br1")) != "br1" {
		t.Errorf("%+v at %s", web, got.bridgeOf(web))
	}
	if diff := cmp.Diff(healthy(), f, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
		cmp.AllowUnexported(Facts{})); diff != "" {
		t.Errorf("the facts before changed:\n%s", diff)
	}
}

// addresses returns the kernel's messages about the addresses of a device.
func addresses(index byte, all ...string) (out []raw.Message) {
	for _, text := range all {
		p := netip.MustParsePrefix(text)
		const six, four = 10, 2 // AF_INET6, AF_INET
		family := byte(four)
		if p.Addr().Is6() {
			family = six
		}
		b := append([]byte{family, byte(p.Bits()), 0, 0, index, 0, 0, 0}, byte(4+p.Addr().BitLen()/8), 0,
			unix.IFA_ADDRESS, 0)
		out = append(out, raw.Message{Type: unix.RTM_NEWADDR, Data: append(b, p.Addr().AsSlice()...)})
	}
	return out
}

// Ports that rules redirect to containers are not filtered by INPUT, which the user may expect.
func TestTriedInput(t *testing.T) {
	const says = "INPUT does not filter what rules redirect to containers, such as 8080/tcp (web:80): " +
		"FORWARD does, and there Docker's chain DOCKER-USER."
	for commands, want := range map[string]bool{
		"iptables -P INPUT DROP":                                  true,
		"ufw default deny; ufw --force enable":                    true,
		"nft add rule inet own input drop":                        true,
		"iptables -P INPUT DROP; iptables -I DOCKER-USER -j DROP": false,
		"ufw default deny; ufw route allow 80/tcp":                false,
		"sysctl -w net.ipv4.ip_forward=0; iptables -P INPUT DROP": false,
		"sysctl -w net.ipv4.conf.all.rp_filter=1; echo no-inputs": false,
		"iptables -P INPUT DROP; ip route add default dev eth0":   true,
		"iptables -D INPUT 3; iptables -A INPUT -j REJECT":        true,
		"iptables -D INPUT -j DROP":                               false,
		"iptables -A INPUT -p tcp --dport 80 -j ACCEPT":           false,
		"ufw disable":              false,
		"ufw delete deny 8080/tcp": false,
	} {
		for chain, says := range map[string]string{"DOCKER-USER": says,
			"NETAVARK_FORWARD": strings.TrimSuffix(says, ", and there Docker's chain DOCKER-USER.") + "."} {
			x := NewTried(commands, replica.Output{}, []replica.RuleText{{Chain: chain}}, nowhere)
			x.redirected = []Exposed{{Port: 8080, Proto: "tcp", Server: "web:80"}}
			if got := slices.Contains(x.Text(&Changes{}), says); got != want {
				t.Errorf("%q with %s: %t", commands, chain, got)
			}
		}
	}
	if got := (&Tried{Commands: "iptables -P INPUT DROP"}).Text(&Changes{}); slices.Contains(got, says) {
		t.Errorf("without such a port: %q", got)
	}
}

// What the same clients keep is one sentence, although they reach ports at other addresses.
func TestTriedKeeps(t *testing.T) {
	change := func(port uint16, at string) Change {
		return Change{Port: port, Proto: "tcp", Server: "s", Who: []string{"a container on shop"},
			Dial: []string{at}, partly: at != ""}
	}
	x := Tried{one: true, kept: []Change{change(80, ""), change(81, ""), change(82, "10.0.0.2:82"),
		change(83, "10.0.0.3:83")}}
	want := "A container on shop would still reach 80/tcp (s) and 81/tcp (s), 82/tcp (s) at 10.0.0.2, " +
		"and 83/tcp (s) at 10.0.0.3. 0 of 0 connections would be as before."
	if got := x.rest(&Changes{}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
