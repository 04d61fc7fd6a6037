package firewall

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// forward sends a client's packet to 172.17.0.2:80, perhaps translated from 198.18.0.1:8080, past a
// rule that drops what match matches.
func forward(match string, translated bool) Outcome {
	rules := ParseSave(
		"*filter\n:FORWARD ACCEPT [0:0]\n:DOCKER-USER - [0:0]\n-A FORWARD -j DOCKER-USER\n-A DOCKER-USER "+match+" -j DROP\n-A DOCKER-USER -j RETURN\nCOMMIT\n", false)
	p := Packet{Proto: "tcp", Src: at("203.0.113.1"), Dst: at("172.17.0.2"), Port: 80, In: "eth0",
		Out: "docker0"}
	if translated {
		p.Orig = netip.MustParseAddrPort("198.18.0.1:8080")
	}
	return rules.Walk(Filter, Forward, p)
}

func TestConntrack(t *testing.T) {
	for match, want := range map[string]Verdict{
		"-p tcp -m conntrack --ctorigdstport 8080":                  Drop,
		"-p tcp -m conntrack --ctorigdstport 8000:8100":             Drop,
		"-p tcp -m conntrack --ctorigdstport 80":                    Accept,
		"-p tcp -m conntrack ! --ctorigdstport 80":                  Drop,
		"-p udp -m conntrack --ctorigdstport 8080":                  Accept,
		"-m conntrack --ctorigdst 198.18.0.1":                       Drop,
		"-m conntrack --ctorigdst 198.18.0.0/15":                    Drop,
		"-m conntrack ! --ctorigdst 198.18.0.0/15":                  Accept,
		"-m conntrack --ctorigdst 172.17.0.2":                       Accept,
		"-m conntrack --ctorigsrc 203.0.113.0/24":                   Drop,
		"-m conntrack --ctorigsrc 203.0.112.0/24":                   Accept,
		"-m conntrack --ctreplsrc 172.17.0.2":                       Drop,
		"-m conntrack --ctreplsrc 198.18.0.1":                       Accept,
		"-m conntrack --ctrepldst 203.0.113.1":                      Drop,
		"-p tcp -m conntrack --ctreplsrcport 80":                    Drop,
		"-m conntrack --ctproto 6":                                  Drop,
		"-m conntrack --ctproto 17":                                 Accept,
		"-m conntrack ! --ctproto 17":                               Drop,
		"-m conntrack --ctdir ORIGINAL":                             Drop,
		"-m conntrack --ctdir REPLY":                                Accept,
		"-m conntrack --ctstate DNAT":                               Drop,
		"-m conntrack ! --ctstate DNAT":                             Accept,
		"-m conntrack --ctstate SNAT":                               Accept,
		"-m conntrack --ctstate NEW":                                Drop,
		"-m state --state NEW,ESTABLISHED":                          Drop,
		"-m conntrack --ctstate RELATED,ESTABLISHED":                Accept,
		"-m conntrack ! --ctstate RELATED,ESTABLISHED":              Drop,
		"-m conntrack --ctstate INVALID,UNTRACKED":                  Accept,
		"-m conntrack --ctstatus CONFIRMED,ASSURED":                 Accept,
		"-m conntrack ! --ctstatus SEEN_REPLY":                      Drop,
		"-m conntrack --ctstatus NONE":                              Accept,
		"-m conntrack --ctstate NEW --ctorigdstport 8080":           Drop,
		"-m conntrack --ctstate NEW --ctorigdstport 9":              Accept,
		"-m addrtype --dst-type MULTICAST":                          Accept,
		"-m addrtype --dst-type UNICAST":                            Drop,
		"! -p udp":                                                  Drop,
		"! -p tcp":                                                  Accept,
		"-p 6":                                                      Drop,
		"-p esp":                                                    Accept,
		"-m conntrack --ctdir REPLY -m conntrack ! --ctdir REPLY":   Accept,
		`-m comment --comment "a \" -p udp -j ACCEPT"`:              Drop,
		"-m comment --comment -j":                                   Drop,
		"-i eth0 -m comment --comment ! -m conntrack --ctdir REPLY": Accept,
	} {
		if got := forward(match, true); got.Verdict != want || got.Unread != nil ||
			got.Depends != nil {
			t.Errorf("%s: %+v, want %s", match, got, want)
		}
	}
	for match, want := range map[string]Verdict{"-m conntrack --ctorigdst 172.17.0.2": Drop,
		"-p tcp -m conntrack --ctorigdstport 80": Drop,
		"-m conntrack --ctstate DNAT":            Accept} {
		if got := forward(match, false); got.Verdict != want || got.Unread != nil {
			t.Errorf("untranslated, %s: %+v, want %s", match, got, want)
		}
	}
}

// matches with an unknown result, or unknown to the package
var unknown = []string{
	"-m set --match-set bad src", "-m mark --mark 0x1", "-m limit --limit 3/min",
	"-m multiport --dports 80,443", "-p tcp -m tcp --sport 5",
	"-p tcp -m tcp ! --dport 0", "-p tcp -m tcp --tcp-flags SYN SYN", "-m socket", "-m rpfilter",
	"-m owner --uid-owner 0", "-m physdev --physdev-in p1",
	"-m addrtype --dst-type LOCAL --limit-iface-in", "-m addrtype --dst-type BLACKHOLE",
	"-m addrtype --src-type PROHIBIT",
	"-m conntrack --ctexpire 1:9", "-m conntrack --ctorigsrcport 1024:65535",
	"-m conntrack --ctrepldstport 1", "-m conntrack --ctstatus FOO",
	"-m conntrack --ctstate FOO", "-m conntrack --ctdir SIDEWAYS",
	"-m conntrack --ctorigdst 10.0.0.0/255.0.255.0", "-m conntrack --ctproto foo",
	"-s 203.0.113.0/255.0.255.0", "-d 172.17.0.2/255.0.0.255", "! -p foo",
	"-m iprange --src-range 203.0.113.0-203.0.113.9", "-m string --string x --algo bm", "-f",
	"-i eth0 -i eth+", "-m addrtype ! --dst-type UNICAST --limit-iface-in", "--strange",
	"! --strange x",
}

// Unknown matches that could decide are in Unread.
func TestUnknownIsDoubt(t *testing.T) {
	p := Packet{Proto: "tcp", Src: at("203.0.113.1"), Dst: at("172.17.0.2"), Port: 80, In: "eth0",
		Out: "docker0"}
	for _, match := range unknown {
		for verdict, rest := range map[string]string{"DROP": "", "REJECT": "",
			"ACCEPT": "-A A -j DROP\n", "RETURN": "-A A -j DROP\n", "B": "", "TPROXY": "",
			"NFQUEUE": ""} {
			rules := ParseSave(
				"*filter\n:FORWARD ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n-A FORWARD -j A\n-A A "+match+" -j "+verdict+"\n"+rest+"-A B -j DROP\nCOMMIT\n", false)
			if got := rules.Walk(Filter, Forward, p); len(got.Unread) != 1 {
				t.Errorf("%s -j %s: %+v", match, verdict, got)
			}
		}
		for _, rest := range []string{match + " -j ACCEPT", match + " -j LOG", match + " -j C"} {
			rules := ParseSave(
				"*filter\n:FORWARD ACCEPT [0:0]\n:C - [0:0]\n-A FORWARD "+rest+"\n-A C -j LOG\nCOMMIT\n", false)
			if got := rules.Walk(Filter, Forward, p); got.Unread != nil || got.Verdict != Accept {
				t.Errorf("%s: %+v", rest, got)
			}
		}
	}
	for _, target := range []string{"TPROXY", "NFQUEUE --queue-num 1", "CT --notrack", "NOTRACK",
		"SYNPROXY", "TARPIT", "NETMAP --to 10.0.0.0/8", "gone"} {
		rules := ParseSave(
			"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j "+target+"\nCOMMIT\n", false)
		if got := rules.Walk(Filter, Forward, p); len(got.Unread) != 1 {
			t.Errorf("-j %s: %+v", target, got)
		}
	}
}

func TestUntracked(t *testing.T) {
	p := Packet{Proto: "tcp", Src: at("203.0.113.1"), Dst: at("198.18.0.1"), Port: 80, In: "eth0",
		DstLocal: true}
	for match, want := range map[string]Verdict{"--ctstate NEW": Accept, "! --ctstate NEW": Drop,
		"--ctdir ORIGINAL": Accept, "! --ctdir REPLY": Accept,
		"--ctproto 6": Accept, "--ctorigdstport 80": Accept} {
		rules := ParseSave(
			"*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m conntrack "+match+" -j DROP\nCOMMIT\n", false)
		if got := rules.Walk(Filter, Prerouting, p); got.Verdict != want || got.Unread != nil {
			t.Errorf("%s: %+v", match, got)
		}
	}
}

func TestDepends(t *testing.T) {
	p := Packet{Proto: "tcp", Src: at("203.0.113.1"), Dst: at("172.17.0.2"), Port: 80, In: "eth0",
		Out: "docker0",
		Sources: &Sources{Among: netip.MustParsePrefix("0.0.0.0/0"),
			Except: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}}}
	for rules, want := range map[string]struct {
		verdict Verdict
		depends int
	}{
		"-s 198.51.100.0/24 -j DROP":                               {Accept, 1},
		"-s 203.0.113.0/24 -j DROP":                                {Drop, 1},
		"! -s 10.0.0.0/8 -j DROP":                                  {Drop, 1},
		"-s 10.0.0.0/8 -j RETURN|-j DROP":                          {Drop, 1},
		"-s 10.0.0.0/8 -j ACCEPT|-s 10.1.0.0/16 -j RETURN|-j DROP": {Drop, 2},
		"-s 0.0.0.0/0 -j DROP":                                     {Drop, 0},
		// no outside source has it
		"-s 172.17.0.0/16 -j DROP":                      {Accept, 0},
		"! -s 172.17.0.0/16 -j DROP":                    {Drop, 0},
		"-s 10.0.0.0/8 -p udp -j DROP":                  {Accept, 0},
		"-s 10.0.0.0/8 -j DROP|-j DROP":                 {Drop, 0}, // both rules drop
		"-s 10.0.0.0/8 -j LOG":                          {Accept, 0},
		"-m conntrack --ctorigsrc 10.0.0.0/8 -j DROP":   {Accept, 1},
		"-m conntrack ! --ctrepldst 10.0.0.0/8 -j DROP": {Drop, 1},
		"-m addrtype --src-type LOCAL -j DROP":          {Accept, 0},
	} {
		text := "*filter\n:FORWARD ACCEPT [0:0]\n:U - [0:0]\n-A FORWARD -j U\n"
		for r := range strings.SplitSeq(rules, "|") {
			text += "-A U " + r + "\n"
		}
		got := ParseSave(text+"COMMIT\n", false).Walk(Filter, Forward, p)
		if got.Verdict != want.verdict || len(got.Depends) != want.depends || got.Unread != nil {
			t.Errorf("%s: %+v", rules, got)
		}
		known := p
		known.Sources = nil
		got = ParseSave(text+"COMMIT\n", false).Walk(Filter, Forward, known)
		if got.Verdict != want.verdict || got.Depends != nil {
			t.Errorf("%s, of one client: %+v", rules, got)
		}
	}
}

func TestDependsOnMap(t *testing.T) {
	of := func(a string, v Verdict) Element {
		return Element{Key: []Range{Only(at(a).AsSlice())}, Verdict: v}
	}
	rules := func(e ...Element) Rules {
		return Rules{Chains: []Chain{{V4: true, Table: "t", Name: "c", Hook: Input, Kind: Filter,
			Rules: []Rule{{Map: &Lookup{Fields: []Field{SrcAddr}, Elements: e}}}}}}
	}
	p := Packet{Src: at("203.0.113.1"), Dst: at("198.18.0.1"),
		Sources: &Sources{Among: netip.MustParsePrefix("0.0.0.0/0")}}
	for _, c := range []struct {
		r    Rules
		want Verdict
		dep  int
	}{
		{rules(of("10.0.0.1", Drop)), Accept, 1}, {rules(of("203.0.113.1", Drop)), Drop, 1},
		{rules(of("10.0.0.1", Accept)), Accept, 0},
		{rules(of("10.0.0.1", Accept), of("203.0.113.1", Drop), of("10.0.0.2", Reject)), Drop, 1},
	} {
		if got := c.r.Walk(Filter, Input, p); got.Verdict != c.want || len(got.Depends) != c.dep ||
			got.Unread != nil {
			t.Errorf("%+v: %+v", c.r, got)
		}
	}
}

// Both results of each rule are followed, at most once from each place.
func TestManyUnknown(t *testing.T) {
	var text strings.Builder
	text.WriteString("*filter\n:FORWARD ACCEPT [0:0]\n:A - [0:0]\n-A A -j LOG\n")
	for range 200 {
		text.WriteString("-A FORWARD -m mark --mark 1 -j A\n-A A -m mark --mark 2 -j RETURN\n")
	}
	rules := ParseSave(text.String()+"COMMIT\n", false)
	if got := rules.Walk(Filter, Forward, Packet{Dst: at("192.0.2.1")}); got.Verdict != Accept ||
		got.Unread != nil {
		t.Errorf("%+v", got)
	}
}

func TestBeforeAndAfterDNAT(t *testing.T) {
	r := ParseSave(
		"*raw\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n*mangle\n:PREROUTING ACCEPT [0:0]\n:X - [0:0]\nCOMMIT\n*filter\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n", false)
	names := func(r Rules) (out []string) {
		for _, c := range r.Chains {
			out = append(out, c.Table+" "+c.Name)
		}
		return out
	}
	if got := names(r.BeforeDNAT()); !slices.Equal(got,
		[]string{"raw PREROUTING", "mangle PREROUTING", "mangle X"}) {
		t.Error(got)
	}
	if got := names(r.AfterDNAT()); !slices.Equal(got, []string{"mangle X", "filter OUTPUT"}) {
		t.Error(got)
	}
}

func TestStages(t *testing.T) {
	packets := map[Stage]Packet{}
	for _, s := range []Stage{First, Later} {
		packets[s] = Packet{Stage: s, Proto: "tcp", Src: at("172.17.0.1"), Dst: at("172.17.0.2"),
			Port: 80}
	}
	for _, s := range []Stage{Reply, LaterReply} {
		packets[s] = Packet{Stage: s, Proto: "tcp", Src: at("172.17.0.2"), Dst: at("172.17.0.1"),
			Port: 32768, High: 60999, From: 80}
	}
	for match, want := range map[string][]Stage{
		"-m conntrack --ctstate NEW":                    {First},
		"-m conntrack ! --ctstate NEW":                  {Reply, Later, LaterReply},
		"-m state --state ESTABLISHED":                  {Reply, Later, LaterReply},
		"-m conntrack --ctdir REPLY":                    {Reply, LaterReply},
		"-m conntrack --ctdir ORIGINAL":                 {First, Later},
		"-m conntrack --ctstatus SEEN_REPLY":            {Reply, Later, LaterReply},
		"-m conntrack --ctstatus ASSURED":               {Later, LaterReply},
		"-m conntrack --ctorigsrc 172.17.0.1":           {First, Reply, Later, LaterReply},
		"-m conntrack --ctrepldst 172.17.0.2":           {},
		"-p tcp -m conntrack --ctorigdstport 80":        {First, Reply, Later, LaterReply},
		"-p tcp -m conntrack --ctreplsrcport 81":        {},
		"-p tcp -m tcp --dport 80":                      {First, Later},
		"-p tcp -m tcp --dport 1024:65535":              {Reply, LaterReply},
		"-p tcp -m tcp ! --dport 80":                    {Reply, LaterReply},
		"-s 172.17.0.2/32 -m conntrack --ctstate NEW":   {},
		"-p udp -m conntrack --ctstate RELATED,INVALID": {},
	} {
		rules := ParseSave("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT "+match+" -j DROP\nCOMMIT\n",
			false)
		for s, p := range packets {
			if o := rules.Walk(Filter, Input, p); (o.Verdict == Drop) != slices.Contains(want, s) ||
				len(o.Depends)+len(o.Unread) > 0 {
				t.Errorf("%s, stage %d: %+v", match, s, o)
			}
		}
	}
	some := ParseSave(
		"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m tcp --dport 40000 -j DROP\nCOMMIT\n",
		false)
	if o := some.Walk(Filter, Input, packets[Reply]); len(o.Depends) != 1 ||
		o.Depends[0] != "filter INPUT for ports 40000" {
		t.Errorf("one of the client's ports: %+v", o)
	}
}
