package ports

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func TestSince(t *testing.T) {
	drop := losing("machine", replica.Lost{Rule: rule("ip filter", "INPUT", 1, "-j DROP")})
	open, shut := func() *Report { return try(healthy(), 0) },
		func() *Report { return try(healthy(), 0, drop) }
	fewer := healthy()
	fewer.Listeners = fewer.Listeners[1:]
	moved := healthy()
	moved.Containers[0].Addrs[0] = addr("172.17.0.7")
	moved.Containers[0].Devices[0].Addrs[0] = netip.MustParsePrefix("172.17.0.7/16")
	moved.Proxies[0].Container = addrPort("172.17.0.7:80")
	alone := healthy()
	for i := range alone.Devices {
		alone.Devices[i].Uplink, alone.Devices[i].Uplink6 = false, false
	}
	renumbered, down, bare := healthy(), healthy(), healthy()
	renumbered.Devices[1].Addrs = []netip.Prefix{netip.MustParsePrefix("198.18.0.9/24")}
	down.Devices[1].Up = false
	bare.Devices = slices.Delete(bare.Devices, 1, 2)
	renamed := healthy()
	renamed.Listeners[0].Owners[0].Name = "other"
	unnamed := healthy() // Docker was not asked
	unnamed.Containers[0].Name = webID[:12]
	unowned := healthy()
	unowned.Listeners[0].Owners = nil
	const rest = "connections as before."
	for name, c := range map[string]struct {
		old, now *Report
		want     []string
	}{
		"nothing": {open(), open(), []string{"Nobody gained or lost a port."}},
		"lost": {open(), shut(), []string{"Lost: 22/tcp (sshd) and 8080/tcp (web:80) by other " +
			"machines: lost dropped filter INPUT 1 -j DROP."}},
		"gained": {shut(), open(), []string{"Gained: 22/tcp (sshd) and 8080/tcp (web:80) by other " +
			"machines: before, lost dropped filter INPUT 1 -j DROP."}},
		"gone": {open(), try(fewer, 0), []string{
			"Lost: 22/tcp (sshd) by other machines, a container on bridge and this machine: not-served."}},
		"no default route": {open(), try(alone, 0), []string{"Lost: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) by a machine behind eth0's router: no-default-route."}},
		"a default route": {try(alone, 0), open(), []string{"Gained: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) by a machine behind eth0's router: before, no-default-route-led."}},
		"another server": {open(), try(renamed, 0), []string{"Nobody gained or lost a port.",
			"22/tcp (other) from other machines, a container on bridge and this machine: " +
				"other-server other sshd."}},
		"an unknown server": {open(), try(unowned, 0), []string{"Nobody gained or lost a port."}},
		"a container of no known name": {open(), try(unnamed, 0),
			[]string{"Nobody gained or lost a port."}},
		"a new address": {open(), try(moved, 0), []string{"Nobody gained or lost a port."}},
		"the machine's": {open(), try(renumbered, 0), []string{"Lost: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) at 198.18.0.1 by other machines, a container on bridge and this machine: " +
			"address-gone eth0 198.18.0.1."}},
		"a device down": {open(), try(down, 0), []string{"Lost: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) by other machines: device-down eth0."}},
		"none any more": {open(), try(bare, 0), []string{"Lost: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) at 198.18.0.1 by a container on bridge and this machine: device-gone eth0.",
			"Lost: 22/tcp (sshd) and 8080/tcp (web:80) by other machines: device-gone eth0."}},
		"a new device": {try(bare, 0), open(), []string{"Gained: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) by other machines: before, device-new eth0."}},
	} {
		c.now.Since(c.old, "old.json")
		c.now.Say(coded{})
		text := c.now.Changes.Text()
		last := text[len(text)-1]
		if got := text[:len(text)-1]; !slices.Equal(got, c.want) || len(last) < len(rest) ||
			last[len(last)-len(rest):] != rest {
			t.Errorf("%s: %q", name, text)
		}
	}
	unsure := try(healthy(), 0, func(q replica.Dial, a *replica.Answer) {
		if q.Card != "" {
			lose(q, a, replica.Lost{})
			a.Unsure = []string{"a rule matches by user"}
		}
	})
	unsure.Since(open(), "old.json")
	if c := unsure.Changes; c.Open == 0 || len(c.Lost) > 0 {
		t.Errorf("%+v", c)
	}
}

// Reasons that differ only in the address of a missing route are one.
func TestSinceJoinsRoutes(t *testing.T) {
	uncopied := Reason{Code: Uncopied, Text: "a rule"}
	to := func(a string) Reason { return Reason{Code: RouteThere, At: a} }
	got := joinRoutes([]Reason{to("172.17.0.5"), uncopied, to("172.17.0.4"), to("172.17.0.5"), uncopied})
	if want := []Reason{to("172.17.0.5 and 172.17.0.4"), uncopied}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestSinceElsewhere(t *testing.T) {
	of := func(links ...link.Saved) *Report {
		r := try(healthy(), 0)
		f := &Facts{Copy: &Copy{Machine: &replica.Machine{Spaces: []replica.Space{{Links: links}}}}}
		r.cards = f.cards()
		return r
	}
	mac := func(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, n} }
	card, other := link.Saved{Name: "eth0", MAC: mac(1)}, link.Saved{Name: "eth0", MAC: mac(2)}
	lo := link.Saved{Name: "lo", MAC: make(net.HardwareAddr, 6)}
	bridge := link.Saved{Name: "docker0", Kind: "bridge", MAC: mac(3)}
	for name, c := range map[string]struct {
		old, now *Report
		want     bool
	}{
		"the same card":           {of(lo, card, bridge), of(lo, other, card), false},
		"another card":            {of(lo, card, bridge), of(lo, other, bridge), true},
		"no card then":            {of(lo, bridge), of(lo, card), false},
		"no card now":             {of(lo, card), of(lo, bridge), false},
		"a card, no copy of then": {try(healthy(), 0), of(card), false},
	} {
		c.now.Since(c.old, "old.json")
		text := strings.Join(c.now.Changes.Text(), " ")
		if got := strings.HasPrefix(text, "The file may be of another machine"); got != c.want {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A card that has another name now is the same one.
func TestSinceRenamed(t *testing.T) {
	mac := func(n byte) string { return string([]byte{2, 0, 0, 0, 0, n}) }
	named := func(cards map[string]string, device string) *Report {
		f := healthy()
		for i, d := range f.Devices {
			if d.Name == "eth0" {
				f.Devices[i].Name = device
			}
		}
		r := try(f, 0)
		r.cards = cards
		return r
	}
	old := func(macs ...byte) *Report {
		cards := map[string]string{}
		for _, n := range macs {
			cards[mac(n)] = "eth0"
		}
		return named(cards, "eth0")
	}
	for name, c := range map[string]struct {
		old  *Report
		now  map[string]string
		lost bool
	}{
		"renamed":      {old(1), map[string]string{mac(1): "enp1s0"}, false},
		"another card": {old(2), map[string]string{mac(1): "enp1s0"}, true},
		"one of two":   {old(1), map[string]string{mac(1): ""}, true},
	} {
		now := named(c.now, "enp1s0")
		now.Since(c.old, "old.json")
		if got := len(now.Changes.Lost) > 0; got != c.lost {
			t.Errorf("%s: lost %+v", name, now.Changes.Lost)
		}
	}
}
