package dial

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// group identifies calls whose packets are lost in the same place, for a reason that does not
// depend on ports.
type group struct {
	replica.Lost
	src, dst netip.Addr
}

func (w *watcher) explain(ctx context.Context, f found) (*replica.Lost, error) {
	lost, err := w.untraced(ctx, f, w.judge(f))
	if err == nil {
		w.locate(f, lost)
	}
	if err != nil || lost == nil || lost.Rule != nil || lost.Why != "" {
		return lost, err
	}
	if len(f.out) == 0 && f.from.Addr().IsLoopback() { // as judge does by the rules of nf_tables
		r, err := w.legacy(ctx, f, lost.Space, xtables.Redirecting)
		if r != nil || err != nil {
			lost.Why = replica.Localnet
			return lost, err
		}
	}
	g := group{Lost: *lost, src: f.from.Addr(), dst: f.to.Addr()}
	g.Dst = netip.AddrPort{}
	known, ok := w.known[g]
	if !ok {
		if known, err = w.probe(ctx, f, *lost); err != nil {
			return nil, err
		}
		w.known[g] = known
	}
	known.Dst = lost.Dst
	if known.Why == replica.Untraced {
		w.unrouted(f, &known)
	}
	return &known, nil
}

// unrouted completes the reason for the loss of a packet that the namespace discards instead of
// routing it, for example because rules redirected it to a blackhole.
func (w *watcher) unrouted(f found, lost *replica.Lost) {
	s, ok := last(f.out)
	if !ok || s.out || s.place == f.client || lost.Space < 0 || lost.Reply {
		return
	}
	to := s.dst
	for _, e := range f.events {
		if e.Routing && e.space == lost.Space && e.Src == s.src {
			to = e.Dst
		}
	}
	_ = w.net.spaces[lost.Space].Do(func() error {
		_, err := link.RouteFrom(s.src.Addr(), to.Addr(), s.device)
		switch {
		case !errors.Is(err, link.ErrNoRoute) && !errors.Is(err, unix.EINVAL):
		case to.Addr().IsLoopback():
			lost.Why, lost.Dst = replica.Localnet, to
		default:
			lost.Why, lost.Dst = replica.NoRoute, to
		}
		return nil
	})
}

// judge returns where packets were lost, and the reason if the captured packets show it. It returns
// nil if no packet was lost.
func (w *watcher) judge(f found) *replica.Lost {
	got := f.attempt.out.Got
	if got == replica.Connected || got == replica.Failed {
		return nil
	}
	here := w.captures[f.client].space
	if s, ok := last(f.back); ok && s.place == f.client && !s.out && s.src != f.to &&
		len(f.out) > 0 && f.out[0].dst == f.to && got == replica.Timeout {
		return &replica.Lost{Space: here, Reply: true, Why: replica.ReplyUnnatted, Device: s.device}
	}
	if l := w.rule(f); l != nil {
		return l
	}
	if l, ok := f.refused(); ok {
		if l != nil && l.Reply && l.Why == replica.NoRoute && l.Space == here && f.isLocal6() {
			l.Why = replica.Localnet
		}
		return l
	}
	if f.unsent != nil {
		return &replica.Lost{Space: here, Why: replica.NoRoute}
	}
	switch {
	case got == replica.Refused, f.answered():
		return nil
	case got == replica.Unreachable && f.local() &&
		(f.from.Addr().IsLoopback() || f.Source.IsLoopback()):
		return &replica.Lost{Space: here, Why: replica.Localnet}
	case got == replica.Unreachable && f.local() && f.now:
		return &replica.Lost{Space: here, Why: replica.NoRoute}
	case got == replica.Unreachable && f.local():
		return w.unheard(f)
	}
	if len(f.back) > 0 {
		return w.lostReply(f)
	}
	s, ok := last(f.out)
	switch {
	case !ok && f.from.Addr().IsLoopback() && len(f.events) > 0: // DNAT at OUTPUT
		return &replica.Lost{Space: here, Why: replica.Localnet}
	case !ok && got == replica.Closed && len(f.before) > 0: // the kernel refused a relay
		return w.unheard(f)
	case !ok:
		return &replica.Lost{Space: here}
	case !s.out && s.device != "lo" && (s.src.Addr().IsLoopback() || s.dst.Addr().IsLoopback()):
		return &replica.Lost{Space: s.space, Device: s.device, Why: replica.Localnet}
	case s.space < 0 && s.place != f.client: // the packet reached another machine
		for _, left := range slices.Backward(f.out) {
			if left.space >= 0 {
				return &replica.Lost{Space: left.space, Device: left.device, Why: replica.Leaves}
			}
		}
		return &replica.Lost{Space: s.space, Device: s.device, Why: replica.Untraced}
	case s.out && s.space >= 0 && !s.port:
		return &replica.Lost{Space: s.space, Device: s.device, Why: replica.Leaves}
	case s.out:
		return &replica.Lost{Space: s.space, Device: s.device, Why: replica.Untraced}
	}
	return &replica.Lost{Space: s.space, Device: s.device}
}

// unheard explains why a neighbour did not answer. One reason is rp_filter: a neighbour with a
// strict one does not answer if it has no route back to the client by that device.
func (w *watcher) unheard(f found) *replica.Lost {
	for i, ns := range w.net.spaces {
		at := ""
		if i != f.client {
			_ = ns.Do(func() error {
				if at = w.captures[i].deviceOf(f.to.Addr()); !reversePaths() {
					at = ""
				}
				return nil
			})
		}
		if at != "" {
			return &replica.Lost{Space: i, Why: replica.ReversePath, Device: at}
		}
	}
	return &replica.Lost{Space: w.captures[f.client].space, Why: replica.NoNeighbour}
}

func last(all []sighting) (s sighting, ok bool) {
	if len(all) == 0 {
		return s, false
	}
	return all[len(all)-1], true
}

// local reports whether the client's own kernel refused the connection, without an ICMP error.
func (f *found) local() bool { return len(f.errors) == 0 && len(f.before) == 0 }

// isLocal6 reports whether the client is at ::1, to which no packet comes by another device than
// lo.
func (f *found) isLocal6() bool { return f.from.Addr() == netip.IPv6Loopback() }

// answered reports whether the client of the last connection got an answer.
func (f *found) answered() bool {
	return slices.ContainsFunc(f.back, func(s sighting) bool {
		return s.place == f.client && !s.out && s.src == f.to
	}) && f.Proto != "udp"
}

// rule returns the rule of the first event that dropped or rejected a packet, or nil.
func (w *watcher) rule(f found) *replica.Lost {
	all := slices.Concat(f.events, f.earlier)
	for _, verdict := range []string{"drop", "queue"} {
		i := slices.IndexFunc(all, func(e event) bool { return e.Verdict == verdict })
		if i < 0 {
			continue
		}
		e := all[i]
		r := replica.Rule{RuleText: replica.RuleText{Table: e.Table, Chain: e.Chain}}
		if !e.Policy {
			r.Number = w.ruleOf(e).Number
		}
		got := f.attempt.out.Got
		r.Reject = !e.reply && (got == replica.Refused || got == replica.Unreachable ||
			len(f.errors) > 0 || len(f.back) > 0 && !f.connected || got == replica.Closed)
		return &replica.Lost{Space: e.space, Reply: e.reply, Rule: &r, Dst: e.Dst,
			Device: w.captures[e.space].devices[e.In].name}
	}
	return nil
}

// refused explains an ICMP error. ok is false if there was none.
func (f *found) refused() (l *replica.Lost, ok bool) {
	if len(f.errors) == 0 {
		return nil, false
	}
	const slow = int64(50 * time.Millisecond) // a neighbour was requested
	e := f.errors[0]
	about := f.out
	if !e.reply {
		about = f.back
	}
	lost, seen := last(about)
	l = &replica.Lost{Space: e.space, Reply: !e.reply, Device: lost.device}
	six := e.src.Addr().Is6()
	switch {
	case !six && e.code == 1 || six && e.code == 3:
		l.Why = replica.NoRoute
		if !seen || e.at-lost.at > slow {
			l.Why = replica.NoNeighbour
		}
	case !six && e.code == 3, six && e.code == 4: // port unreachable: nothing listens
		return nil, true
	default:
		l.Why = replica.NoRoute
	}
	return l, true
}

// lostReply explains an answer that did not reach the client.
func (w *watcher) lostReply(f found) *replica.Lost {
	at, _ := last(f.back)
	if !at.out && at.space >= 0 {
		l := &replica.Lost{Space: at.space, Reply: true, Device: at.device}
		if at.place == f.client && f.isLocal6() {
			l.Why = replica.Localnet
		}
		return l
	}
	for _, s := range slices.Backward(f.back) {
		if !s.out || s.space < 0 {
			continue
		}
		came := slices.ContainsFunc(f.out, func(r sighting) bool {
			return r.space == s.space && r.device == s.device && !r.out
		})
		l := &replica.Lost{Space: s.space, Reply: true, Device: s.device, Why: replica.Untraced}
		if !came {
			l.Why = replica.ReplyElsewhere
		}
		return l
	}
	return &replica.Lost{Space: at.space, Reply: true, Device: at.device, Why: replica.Untraced}
}

const probeWait = 50 * time.Millisecond

// again makes a call once more. It returns the results of read in a namespace, before and after the
// call.
func again[T any](ctx context.Context, w *watcher, f found, space int, read func() (T, error)) (
	before, after T, err error) {
	ns := w.net.spaces[space]
	if err = ns.Do(func() (err error) { before, err = read(); return err }); err != nil {
		return before, after, err
	}
	if _, err = w.observe(ctx, []*attempt{f.attempt}, probeWait); err != nil {
		return before, after, err
	}
	err = ns.Do(func() (err error) { after, err = read(); return err })
	return before, after, err
}

// untraced looks for a rule of iptables-legacy that lost the packet: the call is made again, and
// the rule's counter must have grown. The packets of an established connection may have been lost
// in any namespace.
func (w *watcher) untraced(ctx context.Context, f found, lost *replica.Lost) (
	*replica.Lost, error) {
	at := replica.Lost{Space: w.captures[f.client].space}
	if s, ok := last(f.out); ok && lost == nil {
		at.Space, at.Device = s.space, s.device
	}
	if s, ok := last(f.back); ok && lost == nil && f.answered() { // lost where the client is
		at = replica.Lost{Space: s.space, Reply: true, Device: s.device}
	}
	if lost != nil {
		at = replica.Lost{Space: lost.Space, Reply: lost.Reply, Device: lost.Device}
	}
	got := f.attempt.out.Got
	if got == replica.Connected || got == replica.Failed || lost != nil && lost.Rule != nil {
		return lost, nil
	}
	spaces := []int{at.Space}
	for i := range w.spaces {
		if f.connected && i != at.Space {
			spaces = append(spaces, i)
		}
	}
	for _, at.Space = range spaces {
		r, err := w.legacy(ctx, f, at.Space, []string{"DROP", "REJECT"})
		if err != nil {
			return lost, err
		}
		if at.Rule = r; r != nil {
			return &at, nil
		}
	}
	return lost, nil
}

// legacy returns the first rule of iptables-legacy in a namespace that has one of the targets and
// matches a packet of the attempt, or nil.
func (w *watcher) legacy(ctx context.Context, f found, space int, targets []string) (*replica.Rule,
	error) {
	if space < 0 || !w.spaces[space].legacy {
		return nil, nil
	}
	before, after, err := again(ctx, w, f, space, xtables.Rules)
	if err != nil || len(before) != len(after) {
		return nil, err
	}
	for i, r := range after {
		if slices.Contains(targets, r.Verdict) && r.Packets > before[i].Packets {
			return &replica.Rule{Reject: r.Verdict == "REJECT",
				RuleText: replica.RuleText{Table: r.Table, Chain: r.Chain, Number: r.Number}}, nil
		}
	}
	return nil, nil
}

// probe makes the call again and explains the loss by the namespace's counters.
func (w *watcher) probe(ctx context.Context, f found, lost replica.Lost) (replica.Lost, error) {
	lost.Why = replica.Untraced
	if lost.Space < 0 {
		return lost, nil
	}
	forwards := true
	before, after, err := again(ctx, w, f, lost.Space, func() (map[string]int, error) {
		forwards = forwarding(lost.Device, f.to.Addr())
		return counters(netstat, snmp, snmp6)
	})
	rose := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return after[n] > before[n] })
	}
	switch {
	case rose("TcpExt.IPReversePathFilter"):
		lost.Why = replica.ReversePath
	case rose("Ip.InAddrErrors", "Ip6InAddrErrors") && !forwards:
		lost.Why = replica.NotForwarded
	case rose("Ip.OutNoRoutes", "Ip6OutNoRoutes"):
		lost.Why, lost.Reply = replica.NoRoute, true
	case rose("IpExt.InNoRoutes", "Ip6InNoRoutes", "Ip.InAddrErrors", "Ip6InAddrErrors"):
		lost.Why = replica.NoRoute
	}
	return lost, err
}

func reversePaths() bool {
	files, _ := filepath.Glob("/proc/sys/net/ipv4/conf/*/rp_filter")
	return slices.ContainsFunc(files, func(f string) bool {
		b, err := os.ReadFile(f)
		return err == nil && strings.TrimSpace(string(b)) != "0"
	})
}

func forwarding(device string, to netip.Addr) bool {
	file := "/proc/sys/net/ipv4/conf/" + device + "/forwarding"
	if to.Is6() {
		file = "/proc/sys/net/ipv6/conf/all/forwarding"
	}
	b, err := os.ReadFile(file)
	return err != nil || strings.TrimSpace(string(b)) != "0"
}
