package ports

import (
	"net/netip"
	"slices"
	"testing"

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
			"Lost: 22/tcp (sshd) by other machines, a container on bridge and this machine."}},
		"no default route": {open(), try(alone, 0), []string{"Lost: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) by a machine behind eth0's router: no-default-route."}},
		"a default route": {try(alone, 0), open(), []string{"Gained: 22/tcp (sshd) and 8080/tcp " +
			"(web:80) by a machine behind eth0's router: before, no-default-route-led."}},
		"a new address": {open(), try(moved, 0), []string{"Nobody gained or lost a port."}},
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
