package dial

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// translated returns how NAT in a namespace rewrites a connection over TCP. ok is false if it does
// not, or if connection tracking there does not know the connection.
func (w *watcher) translated(place int, from, to netip.AddrPort) (t conntrack.Translation,
	ok bool) {
	if place < 0 || place >= len(w.spaces) {
		return t, false
	}
	space := &w.spaces[place]
	if space.translated == nil {
		space.translated = map[[2]netip.AddrPort]conntrack.Translation{}
		_ = w.net.spaces[place].Do(func() error { // without connection tracking there is no NAT
			_, _ = conntrack.Translations("tcp", func(t conntrack.Translation) bool {
				if t.Now != t.To || t.As != t.From {
					space.translated[[2]netip.AddrPort{t.From, t.To}] = t
				}
				return false
			})
			return nil
		})
	}
	t, ok = space.translated[[2]netip.AddrPort{from, to}]
	return t, ok
}

// redirected returns the step, which no device shows, of a packet that rules of a namespace
// redirect to the namespace itself. If the connection was refused, the step has the rule.
func (w *watcher) redirected(ctx context.Context, f found, lost *replica.Lost) ([]replica.Step,
	error) {
	s, ok := last(f.out)
	refused := f.attempt.out.Got == replica.Refused
	if !ok || lost != nil || s.out || s.space < 0 || s.space > 0 && !refused {
		return nil, nil
	}
	came := s.dst
	if s.place == f.client { // a rule of the hook for output
		came = f.to
	}
	step := replica.Step{Space: s.space, Src: s.src, Dst: s.dst}
	for _, e := range f.events {
		if e.Delivered && e.space == s.space && e.Src == s.src {
			step.Dst = e.Dst
		}
	}
	if step.Dst == came {
		return nil, nil
	}
	var err error
	if refused {
		step.Rule, err = w.rewriter(ctx, f, s.space, came)
	}
	return []replica.Step{step}, err
}

// rewriter returns the rule that changed the destination of an attempt's first packet, or nil if it
// is not known.
func (w *watcher) rewriter(ctx context.Context, f found, space int, to netip.AddrPort) (
	*replica.RuleText, error) {
	for _, e := range slices.Backward(f.events) {
		if e.space != space || e.reply || e.Dst != to || e.Verdict != "accept" {
			continue
		}
		if r := w.ruleOf(e); r.Rewrites {
			return &replica.RuleText{Table: e.Table, Chain: e.Chain, Number: r.Number}, nil
		}
	}
	r, err := w.legacy(ctx, f, space, xtables.Redirecting)
	if r == nil {
		return nil, err
	}
	return &r.RuleText, err
}

// locate completes what no device shows of a packet that was lost: from connection tracking its
// destination if rules redirected it, and from the routes the device by which it would have left.
func (w *watcher) locate(f found, lost *replica.Lost) {
	if lost == nil || lost.Rule != nil || lost.Reply || lost.Space < 0 {
		return
	}
	from, to := f.from, f.to
	if s, ok := last(f.out); ok {
		from, to = s.src, s.dst
	}
	if t, ok := w.translated(lost.Space, from, to); ok {
		lost.Dst, to = t.Now, t.Now
	}
	if lost.Why == replica.NoNeighbour {
		_ = w.net.spaces[lost.Space].Do(func() error {
			r, err := link.RouteTo(to.Addr())
			lost.Device = r.Device
			return err
		})
	}
}

// forward sets Lost.Dst of packets that were not forwarded: it makes the calls once more while the
// devices forward them. A rule that redirects a packet shows only behind the decision to forward.
func (w *watcher) forward(ctx context.Context, calls []Call, answers []replica.Answer) error {
	type device struct {
		space int
		name  string
	}
	var which []int
	var again []*attempt
	var off []device
	for i, a := range answers {
		if l := a.Lost; l != nil && l.Why == replica.NotForwarded && l.Device != "" &&
			plain(calls[i].To).Addr().Is4() && len(again) < explained {
			which, again = append(which, i), append(again, &attempt{Call: calls[i]})
			if d := (device{l.Space, l.Device}); !slices.Contains(off, d) {
				off = append(off, d)
			}
		}
	}
	if len(again) == 0 {
		return nil
	}
	set := func(value string) (err error) {
		for _, d := range off {
			err = errors.Join(err, w.net.spaces[d.space].Do(func() error {
				return os.WriteFile("/proc/sys/net/ipv4/conf/"+d.name+"/forwarding", []byte(value), 0)
			}))
		}
		return err
	}
	if err := set("1"); err != nil {
		return errors.Join(err, set("0"))
	}
	all, err := w.observe(ctx, again, probeWait)
	if err = errors.Join(err, set("0")); err != nil {
		return err
	}
	for k, f := range all {
		l := answers[which[k]].Lost
		if s, ok := last(f.out); ok && s.dst != f.to {
			l.Dst = s.dst
		} else if t, ok := w.translated(l.Space, f.from, f.to); ok {
			l.Dst = t.Now
		}
	}
	return nil
}
