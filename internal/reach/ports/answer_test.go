package ports

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// twoFamilies adds an address of IPv6 to the card and to Docker's bridge.
func twoFamilies() *Facts {
	f := healthy()
	f.Devices[1].Addrs = append(f.Devices[1].Addrs, netip.MustParsePrefix("2001:db8:1::1/64"))
	f.Devices[2].Addrs = append(f.Devices[2].Addrs, netip.MustParsePrefix("fd00::1/64"))
	f.Devices[1].Uplink6 = true
	return f
}

// causes returns an answer's sentences without what they say about remedies.
func causes(r *Report) (out []string) {
	for _, text := range r.Answer.Text {
		cause, _, _ := strings.Cut(text, "\n")
		out = append(out, cause)
	}
	return out
}

func TestAnswerByFamily(t *testing.T) {
	const says = ", 8080/tcp is blocked: lost dropped inet mine forward 1."
	for from, lost := range map[string]func(replica.Dial) bool{
		"other machines over IPv4": func(q replica.Dial) bool {
			return q.Card != "" && q.To.Addr().Is4()
		},
		"other machines": func(q replica.Dial) bool { return q.Card != "" },
		"a machine at eth0": func(q replica.Dial) bool {
			return q.Card != "" && !q.Source.IsValid()
		},
		"other machines over IPv4 and a machine at eth0 over IPv6": func(q replica.Dial) bool {
			return q.Card != "" && (q.To.Addr().Is4() || !q.Source.IsValid())
		},
		"this machine at 198.18.0.1": func(q replica.Dial) bool {
			return q.Card+q.Bridge == "" && q.Space == 0 && q.To.Addr() == addr("198.18.0.1")
		},
	} {
		r := try(twoFamilies(), 8080, func(q replica.Dial, a *replica.Answer) {
			if q.Proto == "tcp" && lost(q) {
				lose(q, a, replica.Lost{Rule: rule("inet mine", "forward", 1, "")})
			}
		})
		got := slices.DeleteFunc(causes(r), func(s string) bool {
			return !strings.Contains(s, "blocked")
		})
		if !slices.Equal(got, []string{"From " + from + says}) {
			t.Errorf("%s: %q", from, got)
		}
	}
}

// That nearer clients certainly get an answer does not make it certain that more distant ones get
// none. Neither does a socket of another family.
func TestAnswerOfDoubtfulLoss(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: addrPort("[::]:22"), Inode: 22,
		V6Only: true, Owners: f.Listeners[0].Owners})
	r := try(f, 0, func(q replica.Dial, a *replica.Answer) {
		if q.Card+q.Bridge != "" && q.To.Addr().Is4() {
			lose(q, a, replica.Lost{Rule: rule("ip filter", "INPUT", 0, "")})
			a.Unsure = []string{"a rule matches by rate"}
		}
	})
	for _, x := range r.Exposure {
		if x.Port == 22 && (x.Sure || x.Reach != FromHere) {
			t.Errorf("%+v", x)
		}
	}
	for _, want := range []string{"It is not certain that other machines reach no port.",
		"Perhaps only this machine reaches 22/tcp (sshd) and 8080/tcp (web:80)."} {
		if !slices.ContainsFunc(r.Answer.Text, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no %q in %q", want, r.Answer.Text)
		}
	}
	r = try(healthy(), 22, losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 0, "")}),
		func(q replica.Dial, a *replica.Answer) {
			if q.Card != "" {
				a.Unsure = []string{"a rule matches by rate"}
			}
		})
	if got, want := strings.Join(r.Answer.Text, "\n"),
		"Containers may reach 22/tcp (sshd).\nFrom other machines, 22/tcp may be blocked: "+
			"lost dropped filter INPUT.\nThis may admit them (not tried: toll did not try it in "+
			"this report):\nsudo iptables -I INPUT -d 198.18.0.1 -p tcp --dport 22 -j ACCEPT"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAnswerHeld(t *testing.T) {
	f := healthy()
	f.Containers[0].State = "paused"
	want := []string{"Nothing answers on 8080/tcp (web:80).", "From other machines, containers and " +
		"this machine, 8080/tcp is held: paused container web."}
	if got := try(f, 8080).Answer.Text; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	want = []string{"From other machines, this machine at 198.18.0.1 and this machine at " +
		"172.17.0.1, 8080/tcp is blocked: lost dropped container web mangle INPUT 3.",
		"From containers and this machine at 127.0.0.1, 8080/tcp is held: lost-behind " +
			"172.17.0.2:80 dropped container web mangle INPUT 3."}
	r := try(healthy(), 8080, func(q replica.Dial, a *replica.Answer) {
		if o := &a.Outcomes[0]; q.Proto == "tcp" && q.To.Addr().Is4() {
			o.Got = replica.Timeout
			if len(o.Relays) > 0 {
				o.Got = replica.Silent
			}
			if q.Explain {
				a.Lost = &replica.Lost{Space: 1, Rule: rule("ip mangle", "INPUT", 3, "")}
			}
		}
	})
	if got := causes(r)[1:]; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Ranges keep the container's own address apart from the machine's.
func TestAnswerOwnAddress(t *testing.T) {
	var list []Exposed
	for i := range uint16(3) {
		list = append(list, Exposed{Port: 8000 + i, Proto: "tcp", Server: "a:80", own: true,
			Dial: []string{"172.17.0.7:80"}})
	}
	list = append(list, Exposed{Port: 8003, Proto: "tcp", Server: "a:80"},
		Exposed{Port: 9, Proto: "udp", Server: "b", own: true, Dial: []string{"[fd00::2]:9"}})
	want := []string{"8000-8002/tcp (a:80) at 172.17.0.7:80", "8003/tcp (a:80)",
		"9/udp (b) at [fd00::2]"}
	if got := reachedNames(list); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAnswerOfClient(t *testing.T) {
	for client, want := range map[string]string{
		"198.18.0.20": "Containers and this machine reach 1 port: 7001/tcp (app)." +
			"From 198.18.0.20, 7001/tcp is blocked: lost dropped mangle INPUT 1.",
		"198.18.0.21": "198.18.0.21 reaches 1 port: 7001/tcp (app).",
		"198.18.0.22": "This machine reaches 7001/tcp (app)." +
			"From 198.18.0.22 and containers, 7001/tcp is blocked: lost dropped mangle INPUT 1.",
		"198.18.0.23": "No tried client gets an answer on 7001/tcp (app)." + "From 198.18.0.23, " +
			"containers and this machine, 7001/tcp is blocked: lost dropped mangle INPUT 1.",
		"2001:db8:1::20": "Containers and this machine reach 1 port: 7001/tcp (app)." +
			"Not tried for 2001:db8:1::20, an IPv6 address: 7001/tcp (app).",
	} {
		f := twoFamilies()
		f.Client = addr(client)
		f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:7001"),
			Inode: 8, Owners: []Process{{PID: 8, Name: "app"}}})
		r := try(f, 7001, func(q replica.Dial, a *replica.Answer) {
			if q.Proto == "tcp" && (q.Source == addr("198.18.0.20") ||
				client == "198.18.0.22" && q.Card+q.Bridge != "" || client == "198.18.0.23") {
				lose(q, a, replica.Lost{Rule: rule("ip mangle", "INPUT", 1, "")})
			}
		})
		if got := strings.Join(causes(r), ""); got != want {
			t.Errorf("%s:\n got %s\nwant %s", client, got, want)
		}
	}
	f := twoFamilies()
	f.Client = addr("2001:db8:1::20")
	f.Listeners[0].Addr = addrPort("198.18.0.1:22")
	want := []string{"2001:db8:1::20 reaches 1 port: 8080/tcp (web:80).",
		"Containers and this machine reach 1 port more: 22/tcp (sshd).",
		"Not tried for 2001:db8:1::20, an IPv6 address: 22/tcp (sshd)."}
	if got := try(f, 0).Answer.Text; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	f.Copy = nil
	if got, want := strings.Join(Judge(f, 22).Answer.Text, "\n"),
		"Containers may reach 22/tcp (sshd).\nNot tried for 2001:db8:1::20, an IPv6 address: "+
			"22/tcp (sshd)."; got != want {
		t.Errorf("without a copy: %q, want %q", got, want)
	}
}
