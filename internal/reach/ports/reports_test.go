package ports

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func TestContradict(t *testing.T) {
	r := try(healthy(), 8080, nil)
	if got, want := strings.Join(r.Answer.Text, "\n"),
		"Other machines reach 1 port: 8080/tcp (web:80)."; r.Contradict() || got != want {
		t.Errorf("without checks: %q, want %q", got, want)
	}
	r.Checks = []Check{{Dial: "127.0.0.1:8080", Got: "refused", Expected: ByProxy}}
	want := []string{"toll read something wrongly, or it has changed since: what follows may be false.",
		"127.0.0.1:8080 was expected to be answered, and a real connection was refused."}
	if !r.Contradict() || !slices.Equal(r.Answer.Text, want) {
		t.Errorf("%q", r.Answer.Text)
	}
	if slices.ContainsFunc(r.Exposure, func(x Exposed) bool { return x.Sure }) {
		t.Errorf("%+v", r.Exposure)
	}
}

// In gateway mode routed, Docker lists a port without one of the machine. In others, clients also
// reach a published port at the container's own address.
func TestPublishedAtItsOwnAddress(t *testing.T) {
	f := healthy()
	r := try(f, 80, nil)
	if len(r.Inside) != 2 || !r.Inside[0].Published || r.Inside[0].Dial != "172.17.0.2:80" ||
		r.Inside[0].Paths[OwnAddr].Kind != Direct || !r.Served() {
		t.Errorf("published: %+v", r.Inside)
	}
	if r := try(f, 0, nil); len(r.Inside) != 0 {
		t.Errorf("the list: %+v", r.Inside)
	}
	f.Listeners, f.Proxies = nil, nil
	f.Containers[0].Published = []Published{{"tcp", 80, addrPort("0.0.0.0:0")}}
	for _, port := range []uint16{0, 80} {
		r := try(f, port, nil)
		if len(r.Inside) != 2 || r.Inside[0].Published || !r.Served() {
			t.Errorf("routed, port %d: %+v", port, r.Inside)
		}
	}
}

// The copy has nothing behind a relay, so its stand-in sees another address than the server does.
func TestSeenBehindRelays(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{Proto: "tcp", Addr: addrPort("0.0.0.0:8090"), Inode: 7,
		Owners: []Process{{PID: 77, Name: Rootlesskit}}})
	f.Proxies = append(f.Proxies, Proxy{PID: 77, Proto: "tcp", Host: addrPort("0.0.0.0:8090"),
		Container: addrPort("10.0.2.100:80"), Rootless: true})
	r := try(f, 8090, func(q replica.Dial, a *replica.Answer) {
		a.Outcomes[0].Seen = a.Outcomes[0].Source
	})
	for _, p := range find(t, r, "0.0.0.0", 8090).Dials {
		if p.Answers() && p.Masqueraded && p.Seen != "" {
			t.Errorf("%+v", p)
		}
	}
}

func TestReportOnAProtocol(t *testing.T) {
	f := healthy()
	f.Listeners = append(f.Listeners, Listener{Proto: "udp", Addr: addrPort("0.0.0.0:8080"), Inode: 50,
		Owners: []Process{{PID: 7, Name: "resolver"}}})
	for _, proto := range []string{"tcp", "udp"} {
		f.Proto = proto
		r := try(f, 8080)
		if len(r.Ports) == 0 || slices.ContainsFunc(r.Ports, func(x Row) bool { return x.Proto != proto }) ||
			slices.ContainsFunc(f.Copy.asked, func(q asked) bool { return q.server == nil && q.proto != proto }) {
			t.Errorf("%s: %+v", proto, r.Ports)
		}
	}
}

// In gateway mode "routed" of IPv4, Engine 28 publishes the port over IPv6 alone.
func TestRoutedOverIPv4(t *testing.T) {
	for port, listed := range map[string]bool{"[::]:8080": true, "0.0.0.0:8080": false} {
		f := healthy()
		f.Listeners, f.Proxies = f.Listeners[:1], nil
		f.Containers[0].Addrs = f.Containers[0].Addrs[:1]
		f.Containers[0].Published = []Published{{"tcp", 80, addrPort(port)}}
		r := try(f, 0)
		i := slices.IndexFunc(r.Inside, func(in Inside) bool { return in.Dial == "172.17.0.2:80" })
		if (i >= 0) != listed {
			t.Errorf("published at %s: %+v", port, r.Inside)
		}
		if i >= 0 && (r.Inside[i].Published || r.Inside[i].Paths[Remote].Kind != Direct) {
			t.Errorf("published at %s: %+v", port, r.Inside[i])
		}
	}
}
