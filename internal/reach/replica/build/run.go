package build

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
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
	still, err := c.watch(which)
	if err != nil {
		return replica.Output{}, err
	}
	r, err := jail.Run(ctx, c.spaces[command.Space], string(command.Script), string(dir[:n-1]), places,
		c.grants)
	moved := slices.DeleteFunc(slices.Clone(which), func(i int) bool { return still[i]() })
	if jail.IsRefused(err) {
		return replica.Output{}, &replica.NoJailError{Reason: err}
	}
	if err == nil {
		err = c.reread(which, moved)
	}
	return replica.Output{Code: r.Code, Text: r.Text, Cut: r.Cut, TimedOut: r.TimedOut}, err
}

// watch begins to watch namespaces; see link.Still.
func (c *machine) watch(which []int) (map[int]func() bool, error) {
	out := map[int]func() bool{}
	for _, i := range which {
		err := c.spaces[i].Do(func() (err error) { out[i], err = link.Still(); return err })
		if err != nil {
			for _, still := range out {
				if still != nil {
					still()
				}
			}
			return nil, err
		}
	}
	return out, nil
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
