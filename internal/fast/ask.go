package fast

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/paths/replica"
	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// refused returns why routes may not be used, by Route.Dial. Routes that may be used are not in it.
// It connects to each container in a copy of the machine's network, by docker-proxy and straight,
// and compares what the container's server sees. doubtful means that a busy machine may be a
// reason, so that another try may have another result.
func refused(ctx context.Context, routes []Route) (why map[netip.AddrPort]string, doubtful bool,
	err error) {
	m, err := replica.Read(ctx)
	if err != nil {
		return nil, false, err
	}
	t := trials{machine: m, sockets: map[replica.Socket]int{}, why: map[netip.AddrPort]string{}}
	for _, r := range routes {
		t.add(r)
	}
	s, err := replica.Start(ctx, m, t.list)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = s.Close() }() // its process ends with this one
	answers, err := s.Dial(ctx, t.dials())
	if err != nil {
		return nil, false, err
	}
	for _, x := range t.tried {
		var seen [2]netip.Addr // by docker-proxy, straight
		why := ""
		for i, w := range x.ways() {
			got := answers[:1+clientPorts]
			answers = answers[len(got):]
			if why == "" {
				why = t.judge(ctx, w, got)
				seen[i] = got[0].Outcomes[0].Seen
			}
		}
		if why == "" && seen[0] != seen[1] {
			why = fmt.Sprintf("the server would see %s as the client instead of %s", seen[1],
				seen[0])
		}
		if why != "" {
			t.why[x.route.Dial] = why
		}
	}
	return t.why, t.doubtful, nil
}

type trials struct {
	machine *replica.Machine
	list    []replica.Socket
	sockets map[replica.Socket]int // by stand-in, its index in list
	tried   []trial
	why     map[netip.AddrPort]string

	doubtful bool
}

type trial struct {
	route         Route
	proxy, server int // indexes in trials.list
}

// way is one of the two connections of a trial to the container's server.
type way struct {
	to     netip.AddrPort
	relays []int
	server int
}

func (x trial) ways() []way {
	return []way{{x.route.Dial, []int{x.proxy}, x.server}, {x.route.Target, nil, x.server}}
}

// add plans the connections of a route.
func (t *trials) add(r Route) {
	id, err := netns.ID(r.server)
	space := slices.IndexFunc(t.machine.Spaces, func(s replica.Space) bool { return s.ID == id })
	if err != nil || space <= 0 {
		t.why[r.Dial] = "its container is not linked to this machine's network"
		return
	}
	t.tried = append(t.tried, trial{r,
		t.socket(replica.Socket{Proto: "tcp", Addr: r.host, V6Only: r.host.Addr().Is6(),
			Relay: r.Target}),
		t.socket(replica.Socket{Space: space, Proto: "tcp", Addr: r.Target})})
}

func (t *trials) socket(s replica.Socket) int {
	i, ok := t.sockets[s]
	if !ok {
		i = len(t.list)
		t.sockets[s], t.list = i, append(t.list, s)
	}
	return i
}

// clientPorts is the number of ports that a client tries on each way.
const clientPorts = 16

// dials returns, for each way, a connection whose packets are followed, and long ones from ports
// that are spread over those that the kernel gives to clients.
func (t *trials) dials() (out []replica.Dial) {
	low, high := 32768, 60999
	_, _ = fmt.Sscan(t.machine.Spaces[0].Sysctls["net/ipv4/ip_local_port_range"], &low, &high)
	for _, x := range t.tried {
		for _, w := range x.ways() {
			d := replica.Dial{Proto: "tcp", To: w.to, Explain: true}
			out = append(out, d)
			d.Explain = false
			for i := range clientPorts {
				d.Long = uint16(low + (high-low)*i/(clientPorts-1))
				out = append(out, d)
			}
		}
	}
	return out
}

// judge returns why clients would be served differently on a way, or "" if they would not. Only for
// the first answer were packets followed.
func (t *trials) judge(ctx context.Context, w way, answers []replica.Answer) string {
	var want netip.Addr
	for i, a := range answers {
		what := "a connection to " + w.to.String()
		if i > 0 {
			what = "a large transfer with " + w.to.String()
		}
		o := a.Outcomes[0]
		doubts := len(a.Unsure) > 0 && (i == 0 || len(a.Outcomes) > 1)
		switch {
		case len(a.Outcomes) == 1 && o.Got != replica.Connected:
			t.doubtful = t.doubtful || unexplained(a)
			return what + " is " + t.lost(ctx, a)
		case doubts:
			return what + " may be affected by " + strings.Join(a.Unsure, ", ")
		case len(a.Outcomes) > 1:
			t.doubtful = true
			return what + " does not always have the same outcome"
		case o.Socket != w.server || !slices.Equal(o.Relays, w.relays):
			return what + " is answered by another server"
		case i > 0 && o.Seen != want:
			return what + " comes from another address"
		}
		want = o.Seen
	}
	return ""
}

// unexplained reports whether an exchange failed for no reason that was found.
func unexplained(a replica.Answer) bool {
	return a.Outcomes[0].Got != replica.Refused &&
		(a.Lost == nil || a.Lost.Rule == nil && a.Lost.Why == replica.Untraced)
}

// lost returns where packets are lost, in words that follow "is".
func (t *trials) lost(ctx context.Context, a replica.Answer) string {
	l := a.Lost
	switch {
	case l == nil:
		return string(a.Outcomes[0].Got)
	case l.Rule == nil:
		return fmt.Sprintf("lost: %s", l.Why)
	}
	verb := "dropped"
	if l.Rule.Reject {
		verb = "rejected"
	}
	if l.Reply {
		verb = "answered, and the answer is " + verb
	}
	_ = t.machine.ReadText(ctx, l.Space) // after an error, the rule only has a number
	return verb + " by " + t.machine.Words(*l)
}

// fingerprint returns a text that changes whenever the routes, or what decides about their packets
// on this machine, may have changed. It leaves out the rules inside containers, which apply to
// docker-proxy's connections, too.
func fingerprint(facts *ports.Facts, routes []Route) (string, error) {
	var parts []any
	for _, r := range routes {
		parts = append(parts, r.Dial, r.Target, r.host, r.server, r.ContainerID)
	}
	var errs []error
	add := func(part any, err error) { parts, errs = append(parts, part), append(errs, err) }
	add(nft.Generation())
	add(xtables.List())
	add(ipset.Save())
	add(link.Routes())
	add(link.ReadPolicy())
	hooked, _, err := bpf.Netfilter()
	add(hooked, err)
	add(bpf.OfNamespace())
	add(bpf.OfCgroup(os.Getpid()))
	var names []string
	for _, d := range facts.Devices {
		port := isPort(d)
		if !port {
			names = append(names, d.Name)
		}
		if !port || len(d.Attached) > 0 {
			parts = append(parts, d)
		}
	}
	add(sysctl.ReadAll(names), nil)
	return fmt.Sprint(parts...), errors.Join(errs...)
}

// isPort reports whether a device is only a port of a bridge. Containers' ports come and go.
func isPort(d ports.Device) bool {
	return d.Kind == "veth" && d.Master != "" && !slices.ContainsFunc(d.Addrs,
		func(p netip.Prefix) bool { return !p.Addr().IsLinkLocalUnicast() })
}

// judge splits routes into those that may be used and the others. It tries them in a copy of the
// network only if something has changed since the last call, or if the last result was doubtful.
func (f *Fast) judge(ctx context.Context, facts *ports.Facts, routes []Route) (may []Route,
	left []Refusal, err error) {
	if len(routes) == 0 {
		f.judged.doubtful = false
		return nil, nil, nil
	}
	now, err := fingerprint(facts, routes)
	if err != nil || now != f.judged.of {
		f.judged.of = "" // until the copy has answered
		why, doubtful, err := refused(ctx, routes)
		doubtful = doubtful || err != nil
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case !doubtful:
			f.judged.of = now
		}
		f.judged.why, f.judged.err, f.judged.doubtful = why, err, doubtful
	}
	for _, r := range routes {
		why, remedy := f.judged.why[r.Dial],
			fmt.Sprintf("toll ports %d shows its routes", r.host.Port())
		if err := f.judged.err; err != nil {
			why, remedy = "cannot test its rules in a copy of the network: "+err.Error(), ""
			if hint, ok := errors.AsType[interface {
				error
				Hint() string
			}](err); ok {
				remedy = hint.Hint()
			}
		}
		if why != "" {
			left = append(left, Refusal{r.Container, "tcp", r.host, why, remedy})
			continue
		}
		may = append(may, r)
	}
	return may, left, nil
}
