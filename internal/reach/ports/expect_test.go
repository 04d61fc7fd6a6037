package ports

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func expected(t *testing.T, r *Report, lines ...string) {
	t.Helper()
	var text []string
	for _, l := range lines {
		_, line, _ := strings.Cut(l, ": ")
		text = append(text, line)
	}
	all, err := ParseExpectations(strings.NewReader(strings.Join(text, "\n")), netip.Addr{})
	if err != nil || len(all) != len(lines) {
		t.Fatalf("%v, %d of %d lines", err, len(all), len(lines))
	}
	r.Expect(all)
	for i, e := range r.Expected {
		want, _, _ := strings.Cut(lines[i], ": ")
		if string(e.Holds) != want || e.Holds == Yes != (e.Because.Code == "") {
			t.Errorf("%s, want %s: %s: %+v", e.Holds, want, e.Line, e.Because)
		}
	}
}

func TestExpect(t *testing.T) {
	blocked := losing("machine", replica.Lost{Rule: rule("ip filter", "FORWARD", 1, "-j DROP")})
	all := healthy()
	all.Everything = true
	r := try(all, 0)
	expected(t, r,
		"holds: other machines reach only 22/tcp 8080/tcp",
		"holds: other machines reach 22/tcp",
		"holds: containers on bridge reach 80/tcp, 22/tcp # at its own address",
		"fails: other machines reach only 22/tcp",
		"fails: nobody outside reaches 20-23/tcp",
		"holds: nobody outside reaches 22/udp",
		"fails: this machine reaches 23/tcp",
		"fails: containers on shop do not reach 22/tcp",
		"fails: other machines reach no port",
		"fails: other machines reach only 22/tcp 443/tcp")
	for _, i := range []int{3, 9} { // nobody serves 443/tcp, either
		if b := r.Expected[i].Because; b.Code != Reaches || b.At != "198.18.0.1:8080/tcp" {
			t.Errorf("%s: %+v", r.Expected[i].Line, b)
		}
	}
	f := healthy()
	f.Listeners = f.Listeners[1:]
	r = try(f, 0, blocked)
	expected(t, r, "holds: other machines reach no port", "holds: nobody outside reaches 8080/tcp",
		"fails: other machines reach 8080/tcp", "holds: containers reach 8080/tcp")
	if e := r.Expected[2]; e.Because.Code != GetsNoAnswer || len(e.follow) != 1 ||
		e.follow[0].Lost.Chain != "FORWARD" || e.follow[0].Lost.Number != 1 {
		t.Errorf("%+v", e)
	}
	unsure := try(healthy(), 0, func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" {
			a.Unsure = []string{"a rule matches by user"}
		}
	})
	expected(t, unsure, "?: other machines reach 22/tcp", "?: other machines reach no port",
		"?: nobody outside reaches 22/tcp", "holds: this machine reaches 22/tcp")
}

// A connection that gets no answer in the copy, but may get one on the machine, is no proof that a
// port is not reached.
func TestExpectOfDoubtfulLoss(t *testing.T) {
	f := healthy()
	f.Listeners = f.Listeners[:1]
	f.Containers, f.Proxies = nil, nil
	r := try(f, 0, losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 0, "")}),
		func(q replica.Dial, a *replica.Answer) {
			if q.Card != "" {
				a.Unsure = []string{"a rule matches by rate"}
			}
		})
	expected(t, r, "?: other machines reach no port", "?: nobody outside reaches 22/tcp", "holds: this machine reaches 22/tcp")
	if got, want := strings.Join(r.ExpectNow(), "\n"),
		"# not certain: other machines reach 22/tcp\ncontainers on docker0 reach "+
			"22/tcp\nthis machine reaches 22/tcp"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without a copy nobody knows what rules redirect.
func TestExpectWithoutCopy(t *testing.T) {
	f := healthy()
	f.Containers = nil
	expected(t, Judge(f, 0),
		"?: nobody outside reaches 5555/tcp",
		"?: other machines reach no port",
		"?: other machines reach only 22/tcp 8080/tcp",
		"?: other machines reach 5555/tcp",
		"?: this machine does not reach 5555/tcp",
		"?: containers on shop reach 22/tcp",
		"?: containers on shop do not reach 22/tcp")
}

// One client's answer fails or holds a line, whatever others get.
func TestExpectOfOneOfSeveralClients(t *testing.T) {
	r := try(healthy(), 0)
	for i := range r.Ports {
		for j := range r.Ports[i].Dials {
			r.Ports[i].Dials[j].Depends = []string{"another address: nothing"}
		}
	}
	expected(t, r, "fails: nobody outside reaches 22/tcp", "holds: other machines reach 22/tcp",
		"holds: this machine reaches 8080/tcp")
}

// A line about containers is about new ones: one that rules single out does not make it hold, but
// it must not reach what containers must not.
func TestExpectOfSingledOutContainers(t *testing.T) {
	f := healthy()
	f.Containers = append(f.Containers, Container{ID: "app", Name: "app", PID: 306, State: "running",
		Space: "net:[3]", Networks: []string{"bridge"}, Addrs: []netip.Addr{addr("172.17.0.3")},
		Devices: []Device{{Name: "eth0", Index: 7, Kind: "veth", MTU: 1500, Up: true, Peer: 8,
			Addrs: []netip.Prefix{netip.MustParsePrefix("172.17.0.3/16")}}}})
	f.Devices = append(f.Devices, Device{Name: "veth2", Index: 8, Kind: "veth", MTU: 1500, Up: true,
		Master: "docker0", Peer: 7})
	const app = 2
	lost := func(single bool) change {
		return func(q replica.Dial, a *replica.Answer) {
			if q.To.Port() == 22 && (q.Space == app) == single && q.Card == "" && q.Space+len(q.Bridge) > 0 {
				lose(q, a, replica.Lost{Rule: rule("ip filter", "INPUT", 1, "-j DROP")})
			}
		}
	}
	privileged := trySingled(f, 0, []int{app}, lost(false))
	expected(t, privileged, "fails: containers on bridge reach 22/tcp", "fails: containers reach 22/tcp",
		"fails: containers on bridge do not reach 22/tcp")
	if e := privileged.Expected[2].Because; e.Code != Reaches || e.Of != "container app" {
		t.Errorf("%+v", e)
	}
	if got, want := strings.Join(privileged.ExpectNow(), "\n"),
		"other machines reach only 22/tcp 8080/tcp\ncontainers on bridge reach "+
			"8080/tcp\nthis machine reaches 22/tcp 8080/tcp"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	blocked := trySingled(f, 0, []int{app}, lost(true))
	expected(t, blocked, "holds: containers on bridge reach 22/tcp",
		"fails: containers on bridge do not reach 22/tcp")
	expected(t, trySingled(f, 0, []int{app}, lost(true), lost(false)),
		"holds: containers on bridge do not reach 22/tcp")
}

func TestExpectReadsWhatEditorsWrite(t *testing.T) {
	const text = "\ufeffother machines reach 22/tcp\r\ncontainers on my net#1 reach 22/tcp # here\r\n" +
		"\t#containers on reach reach 9/tcp\r\ncontainers on reach reach 9/tcp"
	all, err := ParseExpectations(strings.NewReader(text), netip.Addr{})
	if err != nil || len(all) != 3 || all[0].Line != "other machines reach 22/tcp" ||
		all[1].network != "my net#1" || all[2].network != "reach" {
		t.Errorf("%+v, %v", all, err)
	}
}

// Long ranges that nobody serves take no time.
func TestExpectOfManyPorts(t *testing.T) {
	r := try(healthy(), 0)
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "nobody outside reaches %d/tcp %s\n", 10000+i,
			strings.Repeat("10000-65535/tcp ", 200))
	}
	all, err := ParseExpectations(strings.NewReader(text.String()), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	r.Expect(all) // 11 billion ports
	if r.Expected[999].Holds != Yes {
		t.Errorf("%+v", r.Expected[999])
	}
}

// What is written holds, whatever the machine.
func TestExpectNow(t *testing.T) {
	for name, r := range map[string]*Report{
		"healthy": try(healthy(), 0),
		"blocked": try(healthy(), 0, losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 1, "")})),
		"unsure": try(healthy(), 0, func(q replica.Dial, a *replica.Answer) {
			if q.To.Port() == 22 {
				a.Unsure = []string{"a rule matches by user"}
			}
		}),
	} {
		var lines []string
		for _, l := range r.ExpectNow() {
			if !strings.HasPrefix(l, "#") {
				lines = append(lines, "holds: "+l)
			}
		}
		if len(lines) < 2 {
			t.Errorf("%s: %q", name, lines)
		}
		expected(t, r, lines...)
	}
}

func TestExpectationsAreRefused(t *testing.T) {
	for line, says := range map[string]string{
		"other machines":       `line 3: "other machines" has no "reach"`,
		"other machines reach": `line 3: "other machines reach" names no port`,
		"machines reach 1/tcp": `line 3: "machines" is not one of: other machines, containers, containers on ` +
			"NETWORK, this machine, nobody outside, the address of --client",
		"other machines reach 80":      `line 3: "80" is not a port such as 443/tcp or 8000-8010/udp`,
		"other machines reach 0/tcp":   `line 3: "0/tcp" is not a port such as 443/tcp or 8000-8010/udp`,
		"other machines reach 9-8/tcp": `line 3: "9-8/tcp" is not a port such as 443/tcp or 8000-8010/udp`,
		"192.0.2.1 reaches 80/tcp":     "line 3: 192.0.2.1 is judged only with --client 192.0.2.1",
		"containers on reach 80/tcp": `line 3: "containers on" is not one of: other machines, containers, containers ` +
			"on NETWORK, this machine, nobody outside, the address of --client",
		"other machines do not reach no port": `line 3: "no" is not a port such as 443/tcp or 8000-8010/udp`,
		"# nothing":                           "there is no line that could be checked",
		strings.Repeat("x", 2*maxLine):        "line 3 is longer than 4096 bytes",
		"containers on \xff reach 9/tcp":      "line 3 is not UTF-8 text",
	} {
		_, err := ParseExpectations(strings.NewReader("# fine\n\n"+line), netip.Addr{})
		if err == nil || err.Error() != says {
			t.Errorf("%q, want %q", err, says)
		}
	}
	for client, line := range map[string]string{"192.0.2.1": "::ffff:192.0.2.1 reaches 80/tcp",
		"2001:db8::1": "2001:DB8:0::1 reaches 80/tcp"} {
		_, err := ParseExpectations(strings.NewReader(line), netip.MustParseAddr(client))
		if err != nil {
			t.Error(err)
		}
	}
}

// A line with a mistake has its number, and a hint where it is clear what was meant.
func TestExpectHints(t *testing.T) {
	for line, hint := range map[string]string{
		"other machines reach 80":                   "80/tcp",
		"other machines reach TCP/80":               "80/tcp",
		"other machines reach 22,443/tcp":           "22/tcp 443/tcp",
		"other machines reach 8000:8010/udp":        "8000-8010/udp",
		"other machines reach 8010-8000/tcp":        "8000-8010/tcp",
		"other machines reach https":                "",
		"other machines reach 70000/tcp":            "",
		"other machine reach 80/tcp":                "other machines or this machine",
		"Other Machines reach 80/tcp":               "other machines",
		"everyone reaches 80/tcp":                   "other machines",
		"localhost reaches 80/tcp":                  "this machine",
		"other machines cannot reach 80/tcp":        "other machines do not reach",
		"container on shop reaches 80/tcp":          "containers on shop",
		"containers of shop reach 80/tcp":           "containers on shop",
		"containers in network shop reach 80/tcp":   "containers on shop",
		"container web reaches 80/tcp":              "containers on NETWORK",
		"nobody outside does not reach 80/tcp":      "nobody outside reaches 80/tcp",
		"the quick brown fox reaches 80/tcp":        "",
		"this machine reaches 1/tcp and 8000:9/udp": "",
	} {
		_, err := ParseExpectations(strings.NewReader("# fine\r\n\r\n"+line+"\r\n"), netip.Addr{})
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
			t.Errorf("%q: %v", line, err)
		}
		got := ""
		if h, ok := errors.AsType[*hinted](err); ok {
			got = h.Hint()
		}
		if want := "did you mean " + hint + "?"; hint == "" && got != "" || hint != "" && got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Of lines that cannot both hold, one fails, and names the other. The same line twice is judged
// once.
func TestExpectContradictions(t *testing.T) {
	r := try(healthy(), 0)
	for lines, says := range map[string]string{
		"nobody outside reaches 22/tcp\nother machines reach 21-22/tcp":            "1 and 2",
		"other machines reach 22/tcp 443/tcp\nother machines reach only 443/tcp":   "1 and 2",
		"containers on bridge reach 22/tcp\ncontainers do not reach 22/tcp":        "1 and 2",
		"this machine reaches 22/tcp\n# no\nthis machine does not reach 1-99/tcp":  "1 and 3",
		"other machines reach no port\n\nother machines reach 22/tcp":              "1 and 3",
		"other machines reach 22/tcp\nother machines reach 22/tcp":                 "",
		"nobody outside reaches 80/tcp\nother machines reach 80/udp":               "",
		"other machines reach only 22/tcp 8080/tcp\nother machines reach 8080/tcp": "",
		"other machines reach only 22/tcp\nnobody outside reaches 443/tcp":         "",
	} {
		all, err := ParseExpectations(strings.NewReader(lines), netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(lines, all[0].Line) == 2 && len(all) != 1 {
			t.Errorf("%q is judged %d times", lines, len(all))
		}
		r.Expect(all)
		said := ""
		for _, e := range r.Expected {
			said = cmp.Or(said, e.against.At)
		}
		if said != says {
			t.Errorf("%q: %+v", lines, r.Expected)
		}
	}
}

// A line about a network without containers says which there are.
func TestExpectOfUnknownNetwork(t *testing.T) {
	r := try(healthy(), 0)
	for name, code := range map[string]Code{"brigde": NetworkMeant, "elsewhere": NetworksKnown,
		"web": NetworkIsHome} {
		all, err := ParseExpectations(strings.NewReader("\n\ncontainers on "+name+" reach 22/tcp"),
			netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		r.Expect(all)
		want := Reason{Code: code, Of: name, By: "bridge", N: 3}
		if e := r.Expected[0]; e.Holds != No || e.Because != want {
			t.Errorf("%+v", e)
		}
	}
}

func FuzzParseExpectations(f *testing.F) {
	f.Add("other machines reach only 22/tcp 443/tcp\n# x\ncontainers on shop do not reach 1-9/udp")
	r := try(healthy(), 0)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseExpectations(strings.NewReader(text), netip.Addr{})
		if err != nil {
			return
		}
		r.Expect(all)
		for _, e := range all {
			again, err := ParseExpectations(strings.NewReader(e.Line), netip.Addr{})
			if err != nil || len(again) != 1 || again[0].Line != e.Line {
				t.Errorf("%q: %+v, %v", e.Line, again, err)
			}
		}
	})
}
