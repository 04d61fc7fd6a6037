package build

import (
	"context"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

type setting struct{ key, value string }

var (
	// quick has settings that make addresses usable at once and lift the rate limit of ICMP errors.
	quick = []setting{
		{"net.ipv6.conf.all.accept_dad", "0"}, {"net.ipv6.conf.default.accept_dad", "0"},
		{"net.ipv6.conf.all.dad_transmits", "0"}, {"net.ipv6.conf.default.dad_transmits", "0"},
		{"net.ipv4.icmp_ratemask", "0"}, {"net.ipv6.icmp.ratelimit", "0"},
	}
	// open has settings with which a world answers packets, whichever way they came.
	open = []setting{
		{"net.ipv4.conf.all.rp_filter", "0"}, {"net.ipv4.conf.default.rp_filter", "0"},
		{"net.ipv4.ip_forward", "0"},
	}
	// mute has settings that turn off all answers.
	mute = []setting{
		{"net.ipv4.conf.all.arp_ignore", "8"}, {"net.ipv6.conf.all.disable_ipv6", "1"},
		{"net.ipv6.conf.default.disable_ipv6", "1"},
	}
)

// apply applies settings. It ignores those that the kernel lacks, such as those of IPv6.
func apply(list []setting) {
	for _, s := range list {
		_ = sysctl.Set(s.key, s.value)
	}
}

// inEach calls f in each of the namespaces, in as many at once as there are CPUs.
func inEach(spaces []*netns.NS, f func(i int) error) error {
	return replica.Each(context.Background(), len(spaces), func(i int) error {
		return spaces[i].Do(func() error { return f(i) })
	})
}

// fill makes a namespace's addresses, routes and rules. It must be called in the namespace.
func (c *machine) fill(space int, v replica.Variant) {
	s := &c.from.Spaces[space]
	refused := func(list []raw.Refused) {
		for _, r := range list {
			c.lack(space, r.What, r.Device, r.Err)
		}
	}
	for key, err := range sysctl.SetAll(c.unset(space)) {
		c.lack(space, key, deviceOf(key), err)
	}
	refused(link.MakeAddresses(s.Addresses))
	macs := c.from.MACs()
	refused(link.MakeNeighbours(s.Neighbours, func(index int, mac string) bool {
		at := device{space, index}
		return c.survey.roles[at] == card || c.survey.around(at) != nil && !macs[mac]
	}))
	refused(link.MakeRoutes(s.Nexthops, s.Routes))
	if len(s.Policy) > 0 { // otherwise the namespace keeps the default rules
		refused(link.MakePolicy(s.AssumePolicy(v)))
	}
	lack := func(what string, list []raw.Refused, err error) {
		c.lack(space, what, "", err)
		refused(list)
	}
	list, err := ipset.Restore(s.Sets)
	lack("ipsets", list, err)
	rules, legacy := s.Assume(v, macs)
	list, err = rules.Restore()
	lack("nf_tables rules", list, err)
	for _, t := range legacy {
		list, err = t.Restore()
		lack(t.Table(), list, err)
	}
}

// deviceOf returns the device in a key such as "net/ipv4/conf/eth0/rp_filter", or "".
func deviceOf(key string) string {
	const parts = 5
	p := strings.Split(key, "/")
	if len(p) != parts || p[3] == "all" || p[3] == "default" {
		return ""
	}
	return p[3]
}
