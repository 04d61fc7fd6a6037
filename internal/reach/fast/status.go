package fast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Status describes toll fast on this machine.
type Status struct {
	// "on", "off", or "expired": the lease ran out
	State     string                     `json:"state"`
	Lease     float64                    `json:"lease_seconds"` // time left
	All       bool                       `json:"all"`
	Ports     []uint16                   `json:"ports"` // empty if All
	Parts     []Part                     `json:"parts"`
	Shortcuts []Route                    `json:"shortcuts"`
	Left      []Refusal                  `json:"left_alone"`
	Why       map[shortcut.Reason]uint64 `json:"connections_left_alone"`
	Links     []Link                     `json:"links"`
	LinksLeft []LinkRefusal              `json:"links_left_alone"`
	Notes     []string                   `json:"notes"`
}

// Values of Status.State.
const (
	On      = "on"
	Off     = "off"
	Expired = "expired"
)

// What toll fast never changes.
const (
	connectNote = "not affected: clients in containers and on other machines, UDP, and clients " +
		"that dial the machine's own address"
	linkNote = "links: packets sent by containers are not affected, because the containers' " +
		"own ends of the links are not changed"
)

const unkeptNote = "links: the process that restores them when the lease expires (toll fast " +
	"expire) has ended: toll fast off restores them, toll fast watch starts another"

// Look returns the status. Container names are empty if the engine does not answer.
func Look(ctx context.Context) (*Status, error) {
	out := &Status{State: Off, Shortcuts: []Route{}, Left: []Refusal{}, Ports: []uint16{},
		Parts: []Part{}, Why: map[shortcut.Reason]uint64{},
		Links: []Link{}, LinksLeft: []LinkRefusal{}, Notes: []string{}}
	if os.Geteuid() != 0 {
		return nil, &machine.UnsupportedError{Missing: "reading BPF maps needs root",
			Remedy: remedy.AsRoot("toll fast status")}
	}
	f, err := Open()
	if errors.Is(err, ErrOff) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return out, f.look(ctx, out)
}

func (f *Fast) look(ctx context.Context, out *Status) error {
	st, err := f.noted()
	if err != nil || st == nil && f.table == nil { // turned off since it was opened
		return err
	}
	want, err := f.choiceOf(st)
	if err != nil {
		return err
	}
	out.State, out.All, out.Ports, out.Parts = On, want.All, append(out.Ports, want.Ports...),
		want.Parts
	facts, err := published(ctx)
	if err != nil {
		out.Notes = append(out.Notes,
			fmt.Sprintf("cannot tell which ports are published now: %v", err))
		facts = &ports.Facts{}
		want.Ports = nil
	}
	var leases []time.Duration
	if st != nil {
		leases = append(leases, st.Lease())
		links, left, err := f.lookLinks(st, facts, want)
		if err != nil {
			return err
		}
		out.Links, out.LinksLeft = append(out.Links, links...), append(out.LinksLeft, left...)
		out.Notes = append(out.Notes, linkNote)
		raised := func(l Link) bool { return l.State == Raised }
		if slices.ContainsFunc(links, raised) && journal.Judge(st.Keeper) == journal.Gone {
			out.Notes = append(out.Notes, unkeptNote)
		}
	}
	if f.table != nil {
		s, err := f.table.State()
		if err != nil {
			return err
		}
		if !s.On {
			s.Lease = 0
		}
		leases = append(leases, s.Lease)
		if err := f.lookShortcuts(ctx, facts, want, out); err != nil {
			return err
		}
		out.Notes = append(out.Notes, connectNote)
	}
	lease := slices.Min(leases)
	if out.Lease = lease.Seconds(); lease == 0 {
		out.State = Expired
	}
	return nil
}

func (f *Fast) lookShortcuts(ctx context.Context, facts *ports.Facts, want Choice,
	out *Status) error {
	have, err := f.table.Entries()
	if err != nil {
		return err
	}
	if out.Why, err = f.table.Left(); err != nil {
		return err
	}
	routes, left := decideRoutes(facts, want)
	routes, blocked, err := f.judge(ctx, facts, routes)
	if err != nil {
		out.Notes = append(out.Notes, err.Error())
	}
	out.Left = slices.Concat(out.Left, left, blocked)
	for _, e := range have {
		r := Route{Dial: e.Dial, Target: e.Target, Taken: e.Taken}
		for _, now := range routes {
			if now.Dial == e.Dial && now.Target == e.Target {
				r.Container, r.ContainerID = now.Container, now.ContainerID
			}
		}
		out.Shortcuts = append(out.Shortcuts, r)
	}
	slices.SortFunc(out.Shortcuts, func(a, b Route) int { return a.Dial.Compare(b.Dial) })
	return nil
}
