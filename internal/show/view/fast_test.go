package view

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func TestFast(t *testing.T) {
	at := netip.MustParseAddrPort
	on := &fast.Status{State: fast.On, Lease: 29.6, Ports: []uint16{8080, 9000},
		Shortcuts: []fast.Route{{Container: "web", Dial: at("127.0.0.1:8080"),
			Target: at("172.17.0.2:80"), Taken: 12},
			{Dial: at("[::1]:8080"), Target: at("172.17.0.2:80")}},
		Left: []fast.Refusal{{Container: "dns", Proto: "udp", Host: at("0.0.0.0:9000"),
			Why: "toll fast redirects only TCP"}, {Proto: "tcp", Host: at("0.0.0.0:9000"),
			Why: "nobody publishes it", Remedy: "look"}},
		Why:   map[shortcut.Reason]uint64{"the client is the kernel": 1, "nothing listens": 22},
		Notes: []string{"a note"}}
	small, large := fast.Sizes{GSO: 65536, GRO: 65536, GSO4: 65536, GRO4: 65536},
		fast.Sizes{GSO: 180000, GRO: 180000, GSO4: 180000, GRO4: 180000}
	links := &fast.Status{State: fast.On, Lease: 10, All: true, Parts: []fast.Part{fast.Links},
		Notes: []string{"a note"},
		Links: []fast.Link{{Name: "br-one", Bridge: "br-one", Containers: []string{"api", "web"},
			Before: small, Now: large, State: fast.Raised},
			{Name: "veth1", Before: small, Now: fast.Sizes{
				GSO: 65536, GRO: 65536, GSO4: 100000, GRO4: 65536}, State: fast.ChangedBy}},
		LinksLeft: []fast.LinkRefusal{{What: "br-card", Why: "it has a card"},
			{What: "port 80", Why: "nobody publishes it", Remedy: "look"}}}
	for name, c := range map[string]struct {
		s    *fast.Status
		want string
	}{
		"off": {&fast.Status{State: fast.Off}, "Fast is off.\n"},
		"expired": {&fast.Status{State: fast.Expired, All: true, Notes: []string{"a note"}},
			"Fast is off for all published ports: its lease expired. toll fast watch renews " +
				"it.\n\nNotes\n  a note\n"},
		"links": {links, `Fast is on, for all published ports, links only; it ends in 10 s unless toll fast watch renews it.

                  chosen      largest
  link    bridge  containers  packet, B                       before  state
  br-one  br-one  api, web    180000                          65536   raised
  veth1   -       -           65536/65536, IPv4 100000/65536  65536   changed by others

Links that are not raised
  br-card: it has a card
  port 80: nobody publishes it; hint: look

Notes
  a note
`},
		"on": {on, `Fast is on, for ports 8080, 9000; it ends in 30 s unless toll fast watch renews it.

  clients here                              connections
  that dial       reach          container     that did
  127.0.0.1:8080  172.17.0.2:80  web                 12
  [::1]:8080      172.17.0.2:80  -                    0

Ports without a shortcut
  0.0.0.0:9000/udp of dns: toll fast redirects only TCP
  0.0.0.0:9000/tcp: nobody publishes it; hint: look

Connections to these ports that did not take the shortcut
  22: nothing listens
  1: the client is the kernel

Notes
  a note
  what a client gains, here curl, measured with fast off: toll run --client 'curl -so /dev/null
    {addr}' docker-proxy=127.0.0.1:8080 container=172.17.0.2:80
`},
	} {
		if got := written(t, "table", Fast(c.s), format.Options{}); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
		for _, f := range format.Names(Fast(c.s).Kind) {
			if written(t, f, Fast(c.s), format.Options{}) == "" {
				t.Errorf("%s as %s: nothing", name, f)
			}
		}
	}
}
