package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// treePatience is how long a spanning tree may take with the kernel's delays: 15 s to listen, and
// 15 s to learn.
const treePatience = 35 * time.Second

// stopTrees ends the spanning trees that commands have begun in a namespace, with the devices that
// it has, in which it must be called. On the machine, the ports pass packets after half a minute;
// a copy does not wait for that, unless the ports of a bridge may lead to each other: then it waits
// until the tree has settled, and keeps those ports blocked that the tree blocks. It reports
// whether there were such trees.
func (c *machine) stopTrees(ctx context.Context, space int, found []link.Saved) (stopped bool,
	err error) {
	for _, b := range found {
		if !b.SpanningTree() {
			continue
		}
		if through := c.throughPorts(space, found, b.Index); through > 1 {
			now, unsettled := settled(ctx, b, treePatience)
			if unsettled != nil {
				return stopped, errors.Join(err, unsettled)
			}
			found = now
		}
		stopped = true
		err = errors.Join(err, link.StopSpanningTree(b))
		for _, pass := range []bool{false, true} { // first those by which frames would go in circles
			for _, l := range found {
				if l.Master == b.Index && b.Up && (!pass && l.Blocked() || pass && l.Settling()) {
					err = errors.Join(err, link.SetPort(l, pass))
				}
			}
		}
	}
	return stopped, err
}

// settled waits until no port of the bridge listens or learns, and returns the devices of the
// namespace in which it is called. It returns an error if a port still does after the time: opened
// now, it might let frames go in circles.
func settled(ctx context.Context, bridge link.Saved, within time.Duration) ([]link.Saved, error) {
	for until := time.Now().Add(within); ; time.Sleep(longest) {
		found, err := link.ReadLinks()
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(found, func(l link.Saved) bool {
			return l.Master == bridge.Index && l.Settling()
		})
		switch {
		case i < 0:
			return found, nil
		case time.Now().After(until):
			return nil, fmt.Errorf("%w: port %s of %s after %v", errUnsettled, found[i].Name,
				bridge.Name, within)
		}
	}
}

// errUnsettled means that the kernel's delays for a spanning tree are longer than toll waits.
var errUnsettled = errors.New("a spanning tree has not settled")

// throughPorts returns the number of a bridge's ports by which frames may reach other bridges.
func (c *machine) throughPorts(space int, found []link.Saved, bridge int) (n int) {
	for _, l := range found {
		if l.Master == bridge && !c.endsAt(space, found, l) {
			n++
		}
	}
	return n
}

// endsAt reports whether a bridge's port certainly leads to one device that is no port: the end of
// a pair in a container or a world.
func (c *machine) endsAt(space int, found []link.Saved, port link.Saved) bool {
	if !port.Pair() {
		return false
	}
	if s := c.survey.segmentOf(device{space, port.Index}); s != nil {
		return len(s.cards) == 1 // else there is a hall
	}
	if port.ParentSpace >= 0 {
		at := c.spaceOf(port.ParentSpace)
		if at < 0 {
			return true // the void, or a new container's
		}
		err := c.spaces[at].Do(func() (err error) { found, err = link.ReadLinks(); return err })
		if err != nil {
			return false
		}
	}
	i := slices.IndexFunc(found, func(l link.Saved) bool { return l.Index == port.Parent })
	return i >= 0 && found[i].Master == 0
}
