package fast

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Left lists what toll fast does not change, with the reasons.
type Left struct {
	Ports []Refusal
	Links []LinkRefusal
}

// Refuse returns a *machine.UnsupportedError that says why nothing of the choice can be turned on,
// with a reason for each port, or for each container and bridge if shortcuts were not requested.
func (l Left) Refuse(want Choice) error {
	what, why := "no shortcut for ", []string{}
	if want.With(Connect) {
		for _, p := range want.Ports {
			why = append(why, fmt.Sprintf("port %d: %s", p, l.why(p)))
		}
	} else {
		what = "no link can be raised: "
		for _, x := range l.Links {
			why = append(why, x.What+": "+x.Why)
		}
	}
	err := &machine.UnsupportedError{Missing: what + strings.Join(why, "; "),
		Remedy: "toll ports shows who serves which port"}
	if len(why) == 0 {
		err.Missing = "there is nothing to turn on: the published ports changed meanwhile"
	}
	return err
}

// why prefers the reason of a TCP port.
func (l Left) why(port uint16) string {
	for _, tcp := range []bool{true, false} {
		for _, x := range l.Ports {
			if x.Host.Port() == port && (x.Proto == "tcp") == tcp {
				return x.Why
			}
		}
	}
	return "it changed while toll read it"
}

// Update reads the machine, sets the allowed shortcuts and links, and renews the lease. If it
// returns an error, the lease is left to run out.
func (f *Fast) Update(ctx context.Context, lease time.Duration) (left Left, err error) {
	changes := f.changed()
	want, err := f.choice()
	if err != nil {
		return left, err
	}
	facts, err := published(ctx)
	if err != nil {
		return left, err
	}
	if want.With(Links) {
		if err := f.keepLease(lease); err != nil { // before any link is raised
			return left, err
		}
		if left.Links, err = f.updateLinks(facts, want, lease); err != nil {
			return left, err
		}
	}
	if f.table == nil {
		return left, nil
	}
	routes, unfit := decideRoutes(facts, want)
	f.waiting = slices.ContainsFunc(unfit, func(r Refusal) bool {
		return strings.HasPrefix(r.Why, nobody)
	})
	routes, blocked, err := f.judge(ctx, facts, routes)
	if err != nil {
		return left, err
	}
	changed, err := f.apply(routes)
	left.Ports = slices.Concat(unfit, blocked, changed)
	if err == nil {
		err = f.abortStranded(facts)
	}
	if err != nil {
		return left, err
	}
	return left, f.renew(changes, lease)
}

const namesOfContainers = "names of containers"

// published returns an error if the engine's list of containers is missing.
func published(ctx context.Context) (*ports.Facts, error) {
	facts, err := collect.Published(ctx)
	if err = errors.Join(err, ctx.Err()); err != nil { // the last answers may be missing
		return nil, err
	}
	list := facts.Docker != ""
	for _, m := range facts.Missing {
		list = list && m.What != namesOfContainers
	}
	if !list {
		u := &machine.UnsupportedError{
			Missing: "no Docker Engine answers, so its published ports are unknown",
			Remedy:  dockerapi.StartEngine() + ", or set DOCKER_HOST to its address"}
		for _, m := range facts.Missing {
			if m.What == namesOfContainers {
				u.Err = errors.New(m.Why)
			}
		}
		return nil, u
	}
	return facts, nil
}

// apply removes entries before it adds any.
func (f *Fast) apply(routes []Route) (left []Refusal, err error) {
	have, err := f.table.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range have {
		if !slices.ContainsFunc(routes, func(r Route) bool {
			return r.Dial == e.Dial && r.Target == e.Target
		}) {
			if err := f.table.Remove(e.Dial); err != nil {
				return nil, err
			}
		}
	}
	f.put = map[netip.AddrPort]string{}
	for _, r := range routes {
		f.put[r.Dial] = r.ContainerID
		err := f.table.Add(shortcut.Entry{Dial: r.Dial, Target: r.Target, Server: r.server},
			r.listener)
		if errors.Is(err, shortcut.ErrChanged) {
			delete(f.put, r.Dial)
			left = append(left, Refusal{r.Container, "tcp", r.Dial, err.Error(),
				"toll fast status"})
			err = f.table.Remove(r.Dial)
		}
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

// abortStranded ends redirected connections that wait for a container whose docker-proxy is gone,
// because its end would have ended them, too. Where the kernel cannot abort them, they time out.
func (f *Fast) abortStranded(facts *ports.Facts) error {
	_, err := f.table.Abort(func(e shortcut.Entry) bool {
		return slices.ContainsFunc(facts.Proxies, func(p ports.Proxy) bool {
			return p.Container == e.Target && p.Host.Port() == e.Dial.Port()
		})
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Preview returns what Update would set and leave alone, without changing anything.
func Preview(ctx context.Context, want Choice) (routes []Route, links []Link, left Left,
	err error) {
	f := &Fast{}
	facts, err := published(ctx)
	if err != nil {
		return nil, nil, left, err
	}
	if want.With(Connect) {
		all, unfit := decideRoutes(facts, want)
		routes, left.Ports, err = f.judge(ctx, facts, all)
		if err != nil {
			return nil, nil, left, err
		}
		left.Ports = slices.Concat(unfit, left.Ports)
	}
	if want.With(Links) {
		links, left.Links = decideLinks(facts, want)
	}
	return routes, links, left, nil
}

// drop removes a container's shortcuts at once, or all of them if containerID is "".
func (f *Fast) drop(containerID string) error {
	if f.table == nil {
		return nil
	}
	if containerID == "" {
		all, err := f.table.Entries()
		for _, e := range all {
			err = errors.Join(err, f.table.Remove(e.Dial))
		}
		return err
	}
	var err error
	for dial, id := range f.put {
		if id == containerID {
			err = errors.Join(err, f.table.Remove(dial))
		}
	}
	return err
}
