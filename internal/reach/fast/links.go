package fast

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/shortcut"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Link is a bridge of chosen containers, or one of its ports, with its largest packet sizes.
type Link struct {
	Name       string   `json:"name"`
	Bridge     string   `json:"bridge"`
	Containers []string `json:"containers"`
	Before     Sizes    `json:"before"`
	Now        Sizes    `json:"now"`
	State      string   `json:"state"`

	index int
}

// Values of Link.State.
const (
	Raised    = "raised"
	AsBefore  = "as before"
	HadIt     = "had it before"
	ChangedBy = "changed by others"
)

// Sizes are the largest packet sizes of a link, in bytes.
type Sizes struct {
	GSO  uint32 `json:"gso_max_size"`
	GRO  uint32 `json:"gro_max_size"`
	GSO4 uint32 `json:"gso_ipv4_max_size"`
	GRO4 uint32 `json:"gro_ipv4_max_size"`
}

func sizesOf(s link.Sizes) Sizes { return Sizes{s[0], s[1], s[2], s[3]} }

// String returns the size, or all four if they differ.
func (s Sizes) String() string {
	if s.GRO == s.GSO && s.GSO4 == s.GSO && s.GRO4 == s.GSO {
		return fmt.Sprint(s.GSO)
	}
	return fmt.Sprintf("%d/%d, IPv4 %d/%d", s.GSO, s.GRO, s.GSO4, s.GRO4)
}

// LinkRefusal is something whose links are not raised, with the reason.
type LinkRefusal struct {
	What   string `json:"what"` // a container, a bridge or a link
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
}

// decideLinks returns the bridges of the chosen containers and all their ports. Packets for a port
// that was left out, and has a smaller size, would be split in software.
func decideLinks(f *ports.Facts, want Choice) (links []Link, left []LinkRefusal) {
	found := map[uint16]bool{}
	on := map[string][]string{}
	for _, c := range f.Containers {
		chosen := false
		for _, p := range c.Published {
			if p.Proto == "tcp" && want.has(p.Host.Port()) && !c.Measuring {
				chosen, found[p.Host.Port()] = true, true
			}
		}
		if !chosen {
			continue
		}
		bridges, why := bridgesOf(f, c)
		if why != "" {
			left = append(left, LinkRefusal{What: c.Name, Why: why})
		}
		for _, b := range bridges {
			on[b] = append(on[b], c.Name)
		}
	}
	for _, p := range want.Ports {
		if !found[p] {
			left = append(left, LinkRefusal{What: fmt.Sprintf("port %d", p),
				Why:    "no running container publishes it over TCP",
				Remedy: "docker ps lists what is published"})
		}
	}
	for bridge, names := range on {
		members, why := membersOf(f, bridge)
		if why != "" {
			left = append(left, LinkRefusal{What: bridge, Why: why})
			continue
		}
		slices.Sort(names)
		for _, d := range members {
			links = append(links, Link{Name: d.Name, Bridge: bridge, Containers: names,
				index: d.Index})
		}
	}
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Bridge, b.Bridge),
			-cmp.Compare(bit(a.Name == a.Bridge), bit(b.Name == b.Bridge)),
			cmp.Compare(a.index, b.index))
	})
	slices.SortFunc(left, func(a, b LinkRefusal) int { return cmp.Compare(a.What, b.What) })
	return links, left
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bridgesOf returns the Docker bridges that lead to c, or why there are none.
func bridgesOf(f *ports.Facts, c ports.Container) (out []string, why string) {
	switch {
	case c.Rootless:
		return nil, "its engine is rootless: its containers are in another network"
	case c.PID == 0 || c.State != "running":
		return nil, "it is " + cmp.Or(c.State, "not running")
	case c.Host || c.Shares != "":
		return nil, "it has no network of its own"
	}
	for _, a := range c.Addrs {
		if b, ok := towards(f, a); ok && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return nil, "no Docker bridge leads to it"
	}
	return out, ""
}

// membersOf returns a bridge and its ports, or why they must not be changed.
func membersOf(f *ports.Facts, bridge string) (out []ports.Device, why string) {
	for _, d := range f.Devices {
		switch {
		case d.Name == bridge:
			out = append(out, d)
		case d.Master == bridge && d.Kind != "veth":
			return nil, fmt.Sprintf("its port %s is not a container's veth, so the kernel would "+
				"split large packets in software", d.Name)
		case d.Master == bridge:
			out = append(out, d)
		}
	}
	return out, ""
}

func (f *Fast) note() bigtcp.Store { return cmp.Or(f.store, bigtcp.Default) }

// noted returns nil if this network namespace has no note.
func (f *Fast) noted() (*bigtcp.State, error) {
	st, err := f.note().Load()
	if errors.Is(err, bigtcp.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if cookie, err := shortcut.Namespace(); err != nil || cookie != st.Netns {
		return nil, errors.Join(err, errElsewhere)
	}
	return st, nil
}

var errElsewhere = &machine.UnsupportedError{
	Missing: "fast is on in another network namespace",
	Remedy:  "run toll fast off in that namespace"}

// chooseLinks notes the choice. Without the part Links, it takes the links back instead.
func (f *Fast) chooseLinks(c Choice) error {
	st, err := f.noted()
	switch {
	case err != nil:
		return err
	case !c.With(Links):
		_, err = f.takeBack()
		return err
	case st == nil:
		st = &bigtcp.State{}
		if st.Netns, err = shortcut.Namespace(); err != nil {
			return err
		}
	}
	st.Ports = nil
	if !c.All {
		st.Ports = c.Ports
	}
	return f.note().Save(st)
}

// takeBack gives all links their earlier sizes and deletes the note. The caller holds the lock.
func (f *Fast) takeBack() (out bigtcp.Outcome, err error) {
	st, err := f.noted()
	if err != nil {
		return out, err
	}
	if st != nil {
		if out, err = f.note().Apply(st, nil); err != nil {
			return out, err
		}
		for name, err := range out.Failed {
			return out, fmt.Errorf("take back link %s: %w", name, err)
		}
	}
	return out, f.note().Drop()
}

func (f *Fast) updateLinks(facts *ports.Facts, want Choice,
	lease time.Duration) (left []LinkRefusal, err error) {
	lock, err := lockSoon()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	links, left := decideLinks(facts, want)
	f.wanted = nil
	for _, l := range links {
		f.wanted = append(f.wanted, l.index)
	}
	out, on, err := f.setLinks(f.wanted, lease)
	if !on { // turned off meanwhile
		return nil, err
	}
	for name, err := range out.Failed {
		left = append(left, LinkRefusal{What: name, Why: err.Error()})
	}
	slices.SortFunc(left, func(a, b LinkRefusal) int { return cmp.Compare(a.What, b.What) })
	f.kept = append(f.kept, out.Kept...)
	return left, err
}

// setLinks raises the links with these indexes, takes all others back and renews the lease. on is
// false if the part is off. The caller holds the lock.
func (f *Fast) setLinks(indexes []int, lease time.Duration) (out bigtcp.Outcome, on bool,
	err error) {
	st, err := f.noted()
	if err != nil || st == nil {
		return out, false, err
	}
	out, err = f.note().Apply(st, indexes)
	f.links = len(st.Links)
	if err != nil {
		return out, true, err
	}
	st.Renew(lease)
	return out, true, f.note().Save(st)
}

func (f *Fast) lookLinks(st *bigtcp.State, facts *ports.Facts, want Choice) (out []Link,
	left []LinkRefusal, err error) {
	all, err := link.AllSizes()
	if err != nil {
		return nil, nil, err
	}
	now := map[int]link.Sizes{}
	for _, l := range all {
		now[l.Index] = l.Sizes
	}
	wanted, left := decideLinks(facts, want)
	for _, l := range st.Links {
		if !slices.ContainsFunc(wanted, func(w Link) bool { return w.index == l.Index }) {
			wanted = append(wanted, Link{Name: l.Name, index: l.Index, Containers: []string{}})
		}
	}
	for _, l := range wanted {
		sizes, ok := now[l.index]
		if !ok {
			continue
		}
		l.Now, l.Before, l.State = sizesOf(sizes), sizesOf(sizes), AsBefore
		i := slices.IndexFunc(st.Links, func(n bigtcp.Link) bool { return n.Index == l.index })
		switch {
		case i < 0 && slices.Min(sizes[:]) >= bigtcp.Size:
			l.State = HadIt
		case i < 0:
		default:
			l.Before = sizesOf(st.Links[i].Before)
			if sizes == st.Links[i].Set {
				l.State = Raised
			} else if sizes != st.Links[i].Before || st.Links[i].Done {
				l.State = ChangedBy
			}
		}
		out = append(out, l)
	}
	return out, left, nil
}

func chosenFor(st *bigtcp.State) Choice { return Choice{Ports: st.Ports, All: len(st.Ports) == 0} }
