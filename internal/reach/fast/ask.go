package fast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
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
	if why := t.choosePorts(); why != "" {
		for _, x := range t.tried {
			t.why[x.route.Dial] = why
		}
		return t.why, false, nil
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
	for _, w := range t.ways {
		w.why = t.judge(ctx, w, answers[:1+len(w.ports)])
		w.seen = answers[0].Outcomes[0].Seen
		answers = answers[1+len(w.ports):]
	}
	for _, x := range t.tried {
		switch why := cmp.Or(x.proxied.why, x.straight.why); {
		case why != "":
			t.why[x.route.Dial] = why
		case x.proxied.seen != x.straight.seen:
			t.why[x.route.Dial] = fmt.Sprintf("the server would see %s as the client instead of %s",
				x.straight.seen, x.proxied.seen)
		}
	}
	return t.why, t.doubtful, nil
}

type trials struct {
	machine *replica.Machine
	list    []replica.Socket
	sockets map[replica.Socket]int // by stand-in, its index in list
	ways    []*way
	tried   []trial
	why     map[netip.AddrPort]string

	doubtful bool
}

// trial has the two connections to the container's server.
type trial struct {
	route             Route
	proxied, straight *way
}

// way is a connection to a container's server. Several routes may have the same one.
type way struct {
	to     netip.AddrPort
	relays []int
	server int      // indexes in trials.list
	ports  []uint16 // of the clients that exchange long data

	why  string     // clients would be served differently; "": they would not
	seen netip.Addr // the client's address as the server sees it
}

// add plans the connections of a route.
func (t *trials) add(r Route) {
	id, err := netns.ID(r.server)
	space := slices.IndexFunc(t.machine.Spaces, func(s replica.Space) bool { return s.ID == id })
	if err != nil || space <= 0 {
		t.why[r.Dial] = "its container is not linked to this machine's network"
		return
	}
	proxy := t.socket(replica.Socket{Proto: "tcp", Addr: r.host, V6Only: r.host.Addr().Is6(),
		Relay: r.Target})
	server := t.socket(replica.Socket{Space: space, Proto: "tcp", Addr: r.Target})
	t.tried = append(t.tried, trial{r, t.way(r.Dial, []int{proxy}, server),
		t.way(r.Target, nil, server)})
}

func (t *trials) way(to netip.AddrPort, relays []int, server int) *way {
	for _, w := range t.ways {
		if w.to == to && w.server == server && slices.Equal(w.relays, relays) {
			return w
		}
	}
	w := &way{to: to, relays: relays, server: server}
	t.ways = append(t.ways, w)
	return w
}

func (t *trials) socket(s replica.Socket) int {
	i, ok := t.sockets[s]
	if !ok {
		i = len(t.list)
		t.sockets[s], t.list = i, append(t.list, s)
	}
	return i
}

// mostPorts is the number of ports from which clients try each way.
const mostPorts = 16

// choosePorts gives each way ports of its own, spread over those that the kernel gives to clients,
// with all values of their lowest four bits. If there are too few, ways share them or have fewer,
// so that the stand-ins of docker-proxy find some for their own connections. It returns why even
// one port each is too much, or "".
func (t *trials) choosePorts() string {
	free := t.freePorts()
	to := map[netip.AddrPort]int{} // connections to a container at the same time
	more := 0
	for _, w := range t.ways {
		for _, i := range w.relays {
			to[t.list[i].Relay]++
			more = max(more, to[t.list[i].Relay])
		}
	}
	n := min(mostPorts, len(free)/(1+more))
	if n == 0 && len(t.ways) > 0 {
		return fmt.Sprintf("this machine has too few local ports for clients to try it: %d of "+
			"net.ipv4.ip_local_port_range are free, and %d are needed", len(free), 1+more)
	}
	used := map[uint16]bool{}
	for k, w := range t.ways {
		for i := range n {
			part := free[i*len(free)/n : (i+1)*len(free)/n-more]
			own := func(p uint16) bool { return !used[p] }
			at := slices.IndexFunc(part, func(p uint16) bool {
				return own(p) && int(p)%mostPorts == i
			})
			if at < 0 {
				at = slices.IndexFunc(part, own)
			}
			if at < 0 {
				at = k % len(part)
			}
			used[part[at]] = true
			w.ports = append(w.ports, part[at])
		}
	}
	return ""
}

// freePorts returns the ports that the kernel gives to clients, except those of docker-proxies.
func (t *trials) freePorts() (out []uint16) {
	low, high := 32768, 60999
	_, _ = fmt.Sscan(t.machine.Spaces[0].Sysctls["net/ipv4/ip_local_port_range"], &low, &high)
	listens := map[int]bool{}
	for _, s := range t.list {
		if s.Space == 0 {
			listens[int(s.Addr.Port())] = true
		}
	}
	for p := max(low, 1); p <= min(high, 1<<16-1); p++ {
		if !listens[p] {
			out = append(out, uint16(p))
		}
	}
	return out
}

// dials returns, for each way, a connection whose packets are followed, and the long exchanges.
func (t *trials) dials() (out []replica.Dial) {
	for _, w := range t.ways {
		d := replica.Dial{Proto: "tcp", To: w.to, Explain: true}
		out = append(out, d)
		for _, d.Long = range w.ports {
			out = append(out, d)
		}
	}
	return out
}

// judge returns why clients would be served differently on a way, or "" if they would not. After
// the first answer come those of the long exchanges.
func (t *trials) judge(ctx context.Context, w *way, answers []replica.Answer) string {
	want := answers[0].Outcomes[0].Seen
	for i, a := range answers {
		what := "a connection to " + w.to.String()
		if i > 0 {
			what = "a large transfer with " + w.to.String()
		}
		o := a.Outcomes[0]
		doubts := len(a.Unsure) > 0 && (i == 0 || len(a.Outcomes) > 1)
		switch {
		case o.Got == replica.Failed:
			t.doubtful = true
			return what + " could not be tried: " + o.Err
		case len(a.Outcomes) == 1 && o.Got != replica.Connected:
			t.doubtful = t.doubtful || unexplained(a)
			return what + " is " + t.lost(ctx, a, i > 0)
		case doubts:
			return what + " may be affected by " + strings.Join(a.Unsure, ", ")
		case len(a.Outcomes) > 1:
			t.doubtful = true
			return what + " does not always have the same outcome"
		case o.Socket != w.server || !slices.Equal(o.Relays, w.relays):
			return what + " is answered by another server"
		case o.Seen != want:
			return what + " comes from another address"
		}
	}
	return ""
}

// unexplained reports whether an exchange failed for no reason that was found.
func unexplained(a replica.Answer) bool {
	return a.Outcomes[0].Got != replica.Refused &&
		(a.Lost == nil || a.Lost.Rule == nil && a.Lost.Why == replica.Untraced)
}

// lost returns where packets of a connection or transfer are lost, in words that follow "is".
func (t *trials) lost(ctx context.Context, a replica.Answer, transfer bool) string {
	l := a.Lost
	switch {
	case l == nil:
		return outcomeWords[a.Outcomes[0].Got]
	case l.Rule == nil:
		return fmt.Sprintf("lost: %s", l.Why)
	}
	verb := "dropped"
	if l.Rule.Reject {
		verb = "rejected"
	}
	if l.Reply && !transfer {
		verb = "answered, and the answer is " + verb
	}
	_ = t.machine.ReadText(ctx, l.Space) // after an error, the rule only has a number
	return verb + " by " + t.machine.Words(*l)
}

var outcomeWords = map[replica.Got]string{replica.Refused: "refused", replica.Closed: "closed",
	replica.Silent: "accepted, and then not completed", replica.Timeout: "not answered",
	replica.Unreachable: "not routed"}

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
			why, remedy = "cannot test its rules in a copy of the network: "+err.Error(), hint.Of(err)
		}
		if why != "" {
			left = append(left, Refusal{r.Container, "tcp", r.host, why, remedy})
			continue
		}
		may = append(may, r)
	}
	return may, left, nil
}
