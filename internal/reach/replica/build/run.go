package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/jail"
)

// Run runs a command in a jail. See replica.Session.Run.
func (c *machine) Run(ctx context.Context, command replica.Command) (replica.Output, error) {
	if command.Space < 0 || command.Space >= len(c.spaces) {
		return replica.Output{}, fmt.Errorf("there is no namespace %d", command.Space)
	}
	if err := c.forget(); err != nil {
		return replica.Output{}, fmt.Errorf("forget earlier connections: %w", err)
	}
	dir := make([]byte, unix.PathMax)
	n, err := unix.Getcwd(dir)
	if err != nil {
		dir, n = []byte("/"), 2
	}
	var places []jail.Place
	var which []int
	for i, s := range c.from.Spaces {
		switch {
		case !command.Alone:
			places = append(places, jail.Place{PID: s.PID, Names: s.Names, FD: c.files[i]})
		case i == command.Space:
			places = append(places, jail.Place{FD: c.files[i]})
		default:
			continue
		}
		which = append(which, i)
	}
	before, err := c.watch(which)
	if err != nil {
		return replica.Output{}, err
	}
	r, err := jail.Run(ctx, c.spaces[command.Space], string(command.Script), string(dir[:n-1]), places,
		c.grants)
	moved, failed := c.moved(which, before)
	if jail.IsRefused(err) {
		return replica.Output{}, &replica.NoJailError{Reason: err}
	}
	if err = cmp.Or(err, failed); err == nil {
		err = c.reread(ctx, which, moved)
	}
	return replica.Output{Code: r.Code, Text: r.Text, Cut: r.Cut, TimedOut: r.TimedOut}, err
}

// watched is a namespace before commands.
type watched struct {
	still  func() (devices, others bool)
	links  []link.Saved
	routes []raw.Message
}

// watch begins to watch namespaces; see link.Still. It notes which rules they have.
func (c *machine) watch(which []int) (map[int]*watched, error) {
	out := map[int]*watched{}
	for _, i := range which {
		w := &watched{}
		err := c.spaces[i].Do(func() (err error) {
			if w.still, err = link.Still(); err != nil {
				return err
			}
			out[i] = w
			if w.links, w.routes, err = linksAndRoutes(); err != nil {
				return err
			}
			if _, ok := c.unread[i]; !ok {
				c.unread[i], err = rulesNow()
			}
			return err
		})
		if err != nil {
			for _, w := range out {
				w.still()
			}
			return nil, err
		}
	}
	return out, nil
}

// moved returns those of the watched namespaces in which more than rules and parameters may have
// changed.
func (c *machine) moved(which []int, before map[int]*watched) (out []int, err error) {
	for _, i := range which {
		devices, others := before[i].still()
		if !devices && others && err == nil {
			var links []link.Saved
			var routes []raw.Message
			err = c.spaces[i].Do(func() (err error) { links, routes, err = linksAndRoutes(); return err })
			devices = link.Alike(before[i].links, links) && reflect.DeepEqual(before[i].routes, routes)
		}
		if !devices || !others {
			out = append(out, i)
		}
	}
	return out, err
}

// linksAndRoutes reads the devices and routes of the namespace in which it is called.
func linksAndRoutes() (links []link.Saved, routes []raw.Message, err error) {
	if links, err = link.ReadLinks(); err != nil {
		return nil, nil, err
	}
	routes, err = link.ReadRoutes()
	return links, routes, err
}

// forget removes what connections have left in the copy, as if none had been made: the new
// containers, tracked connections, and what link.Forget removes.
func (c *machine) forget() error {
	if err := c.removeGuests(); err != nil {
		return err
	}
	spaces := slices.Clone(c.spaces)
	for _, s := range c.survey.segments {
		spaces = append(spaces, s.world.ns)
	}
	c.net.Forget()
	return inEach(spaces, func(int) error {
		err := conntrack.Flush()
		if errors.Is(err, unix.EINVAL) { // the kernel has no connection tracking
			err = nil
		}
		return errors.Join(err, link.Forget())
	})
}
