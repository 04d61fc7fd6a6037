package bigtcp

import (
	"errors"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// Size is the maximum packet size of raised links, in bytes. docs/commands/advise.md has the
// measurements.
const Size = 180000

// Outcome is the result of an Apply.
type Outcome struct {
	Raised  []string // by name
	Lowered []string
	Kept    []string // changed by another program, so not restored
	Failed  map[string]error
}

var errNoIPv4 = &machine.UnsupportedError{
	Missing: "the kernel has no BIG TCP over IPv4 (gso_ipv4_max_size, Linux 6.3)",
	Remedy:  "Linux 6.3 or later, or --parts connect"}

// Supported returns an *machine.UnsupportedError if the kernel lacks BIG TCP.
func Supported() error {
	all, err := link.AllSizes()
	if err == nil && len(all) > 0 && all[0].Sizes[2] == 0 {
		err = errNoIPv4
	}
	return err
}

// Apply raises the links with the given indexes and restores all others in st. It leaves links that
// are large enough unchanged and does not note them.
func (s Store) Apply(st *State, want []int) (out Outcome, err error) {
	out.Failed = map[string]error{}
	all, err := link.AllSizes()
	if err != nil {
		return out, err
	}
	have := map[int]link.Sized{}
	for _, l := range all {
		have[l.Index] = l
	}
	before := slices.Clone(st.Links)
	st.Links = slices.DeleteFunc(st.Links, func(l Link) bool {
		now, ok := have[l.Index]
		if !ok || now.Kind != l.Kind {
			return true
		}
		_, others := l.back(now.Sizes)
		return !l.Done && others // toll was killed before it changed the link
	})
	st.Links = slices.DeleteFunc(st.Links, func(l Link) bool {
		return !slices.Contains(want, l.Index) && out.takeBack(l, have[l.Index].Sizes)
	})
	out.note(st, want, have)
	open := func(l Link) bool { return !l.Done }
	if !slices.ContainsFunc(st.Links, open) {
		if slices.Equal(before, st.Links) {
			return out, nil
		}
		return out, s.Save(st)
	}
	if err := s.Save(st); err != nil {
		st.Links = slices.DeleteFunc(st.Links, open)
		return out, err
	}
	st.Links = slices.DeleteFunc(st.Links, func(l Link) bool {
		return !l.Done && out.failed(l, link.SetSizes(l.Index, l.Set))
	})
	for i := range st.Links {
		if l := &st.Links[i]; !l.Done {
			l.Done = true
			out.Raised = append(out.Raised, l.Name)
		}
	}
	return out, s.Save(st)
}

// note adds to st the wanted links that are smaller than Size and not in it.
func (o *Outcome) note(st *State, want []int, have map[int]link.Sized) {
	for _, i := range want {
		now, ok := have[i]
		if !ok || slices.ContainsFunc(st.Links, func(l Link) bool { return l.Index == i }) {
			continue
		}
		if now.Sizes[2] == 0 {
			o.Failed[now.Name] = errNoIPv4
			continue
		}
		to := now.Sizes
		for k := range to {
			to[k] = max(to[k], Size)
		}
		if to != now.Sizes {
			st.Links = append(st.Links, Link{Index: i, Name: now.Name, Kind: now.Kind,
				Before: now.Sizes, Set: to})
		}
	}
}

func (o *Outcome) failed(l Link, err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, link.ErrGone) {
		o.Failed[l.Name] = errors.Join(err, link.SetSizes(l.Index, l.Before))
	}
	return true
}

// takeBack restores a link. It returns false if the kernel refused, so that the caller tries again.
func (o *Outcome) takeBack(l Link, now link.Sizes) bool {
	to, others := l.back(now)
	if others {
		o.Kept = append(o.Kept, l.Name)
	}
	if to == now {
		return true
	}
	if err := link.SetSizes(l.Index, to); err != nil && !errors.Is(err, link.ErrGone) {
		o.Failed[l.Name] = err
		return false
	}
	o.Lowered = append(o.Lowered, l.Name)
	return true
}

// back returns the sizes to restore. others means that some present sizes are neither the original
// nor the raised ones.
func (l Link) back(now link.Sizes) (to link.Sizes, others bool) {
	to = now
	for i := range to {
		switch now[i] {
		case l.Set[i]:
			to[i] = l.Before[i]
		case l.Before[i]:
		default:
			others = true
		}
	}
	return to, others
}
