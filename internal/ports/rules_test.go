package ports

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

func dropping(chain, rule string) firewall.Rules {
	return firewall.ParseSave(strings.Replace(
		withProxy, ":DOCKER - [0:0]", ":OUTPUT ACCEPT [0:0]\n:DOCKER - [0:0]\n-A "+chain+" "+rule,
		1), false)
}

func TestAdministratorsRules(t *testing.T) {
	for _, c := range []struct{ chain, rule, want string }{
		{"FORWARD", "-p tcp -m conntrack --ctorigdstport 8080 -j DROP",
			"proxy  DNAT proxy blocked"},
		{"FORWARD", "-p tcp -m conntrack --ctorigdstport 8080 --ctdir ORIGINAL -j REJECT",
			"proxy  DNAT proxy blocked"},
		{"FORWARD", "-m conntrack --ctorigdst 198.18.0.1 -j DROP", "proxy  DNAT proxy blocked"},
		{"FORWARD", "-m conntrack --ctorigdst 198.18.0.9 -j DROP", "proxy  DNAT proxy DNAT"},
		{"FORWARD", "-m conntrack --ctstate DNAT -j DROP", "proxy  DNAT proxy blocked"},
		{"FORWARD", "-m conntrack ! --ctstate DNAT -j DROP", "proxy  DNAT proxy DNAT"},
		{"FORWARD", "-m conntrack --ctdir REPLY -j DROP", "proxy  DNAT proxy DNAT"},
		{"FORWARD", "-i eth0 -m conntrack --ctdir ORIGINAL -j DROP", "proxy  DNAT proxy blocked"},
		{"FORWARD", "-m conntrack --ctexpire 5 -j DROP", "proxy  DNAT proxy DNAT?"},
		{"FORWARD", "-s 198.51.100.0/24 -j DROP", "proxy  DNAT proxy DNAT*"},
		{"FORWARD", "-i eth0 ! -s 198.51.100.0/24 -j DROP", "proxy  DNAT proxy blocked*"},
		// no outside source has it
		{"FORWARD", "-s 172.17.0.0/16 -o docker0 -j DROP", "proxy  DNAT proxy DNAT"},
		{"INPUT", "-s 172.17.0.9 -j DROP", "proxy  DNAT proxy* DNAT"},
		{"INPUT", "-i lo -p tcp --dport 8080 -j DROP", "blocked  DNAT proxy DNAT"},
		{"INPUT", "-i lo -m conntrack --ctstatus CONFIRMED -j DROP", "blocked  DNAT proxy DNAT"},
		{"OUTPUT", "-d 127.0.0.1 -p tcp --dport 8080 -j DROP", "blocked  DNAT proxy DNAT"},
		{"OUTPUT", "-o docker0 -j DROP", "held  blocked held DNAT"},
		{"OUTPUT", "-p tcp -m conntrack --ctorigdstport 8080 -j DROP",
			"blocked  blocked proxy DNAT"},
	} {
		f := healthy()
		f.Rules = dropping(c.chain, c.rule)
		row := find(t, Judge(f, 8080), "0.0.0.0", 8080)
		var got []string
		for _, client := range clients {
			p := row.Paths[client]
			got = append(got, string(p.Kind)+strings.Repeat("?", len(p.Doubt))+strings.Repeat(
				"*", len(p.Depends)))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s %s: %q, want %q", c.chain, c.rule, s, c.want)
		}
	}
}

func TestRulesBeforeAndAfterDNAT(t *testing.T) {
	const raw = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp --dport 8080 -j DROP\nCOMMIT\n"
	f := healthy()
	f.Rules.Chains = append(f.Rules.Chains, firewall.ParseSave(raw, false).Chains...)
	if got := routes(find(t, Judge(f, 8080), "0.0.0.0", 8080)); got != "blocked  DNAT blocked blocked" {
		t.Errorf("%q", got)
	}
	f = healthy()
	late := firewall.ParseSave(strings.ReplaceAll(raw, "8080", "80"), false).Chains
	late[0].Priority = 0
	f.Rules.Chains = append(f.Rules.Chains, late...)
	if got := routes(find(t, Judge(f, 8080), "0.0.0.0", 8080)); got != "proxy  DNAT proxy blocked" {
		t.Errorf("%q", got)
	}
}

func TestRedirect(t *testing.T) {
	f := healthy()
	f.Rules = firewall.ParseSave(
		"*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp --dport 23 -j REDIRECT --to-ports 22\nCOMMIT\n", false)
	row := find(t, Judge(f, 23), "0.0.0.0", 23)
	if got := routes(row); got != "nothing  nothing direct direct" || row.Server.Name != "sshd" {
		t.Errorf("%q %+v", got, row)
	}
}

func TestClient(t *testing.T) {
	f := healthy()
	f.Rules = dropping("FORWARD", "-s 198.51.100.0/24 -j DROP")
	for client, want := range map[string]PathKind{"198.51.100.7": Blocked, "198.51.101.7": ByNAT} {
		f.Client = addr(client)
		r := Judge(f, 8080)
		if p := find(t, r, "0.0.0.0", 8080).Paths[Remote]; p.Kind != want || p.Depends != nil ||
			r.Client != client || f.CheckClient(f.Client) != nil {
			t.Errorf("%s: %+v", client, p)
		}
	}
	for _, own := range []string{"198.18.0.1", "127.0.0.9", "172.17.0.9"} {
		if f.CheckClient(addr(own)) == nil {
			t.Errorf("%s is taken for another machine", own)
		}
	}
	f.Devices = append(f.Devices, Device{Name: "eth1", Index: 9, Kind: "device", Up: true,
		MTU: 1500, Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}})
	f.Rules, f.Client = dropping("FORWARD", "-i eth1 -j DROP"), addr("10.0.0.9")
	if p := find(t, Judge(f, 8080), "0.0.0.0", 8080).Paths[Remote]; p.Kind != Blocked ||
		p.Hops[0].Text != "eth1" {
		t.Errorf("%+v", p)
	}
}

func TestMeasure(t *testing.T) {
	commands := func(r *Report) string {
		var out []string
		for _, m := range r.Measure {
			out = append(out, fmt.Sprint(m.Command, m.Clients))
		}
		return strings.Join(out, "\n")
	}
	f := healthy()
	want := "toll compare publish-proxy publish-nat --from host --to loopback,loopback6,address[127.0.0.1 ::1 own]\n" +
		"toll compare publish-proxy publish-nat --from container[container]\ntoll compare publish-nat publish-proxy --from remote[machine]"
	if got := commands(Judge(f, 8080)); got != want {
		t.Errorf("%s", got)
	}
	proxyOff(f)
	f.Listeners[0].Addr = addrPort("198.18.0.1:22")
	want = "toll compare host publish-nat --from host --to address[own]\ntoll compare host publish-proxy publish-nat --from container[container]\n" +
		"toll compare host publish-proxy publish-nat --from remote[machine]"
	if got := commands(Judge(f, 22)); got != want {
		t.Errorf("%s", got)
	}
	if got := commands(Judge(f, 0)) + commands(Judge(f, 4)); got != "" {
		t.Errorf("%s", got)
	}
}
