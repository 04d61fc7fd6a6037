package bigtcp

import (
	"errors"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
)

// Size is what links are raised to, in bytes: what was measured to help, see
// docs/commands/advise.md.
const Size = 180000

// Outcome is the result of an Apply.
type Outcome struct {
	Raised  []string // links by name
	Lowered []string // taken back
	Kept    []string // not taken back: somebody else changed them since
	Failed  map[string]error
}

// errNoIPv4 says that the kernel has no BIG TCP over IPv4.
var errNoIPv4 = &path.UnsupportedError{Missing: "the kernel has no BIG TCP over IPv4 (gso_ipv4_max_size, Linux 6.3)", Remedy: "Linux 6.3 or later, or --parts connect"}

// Supported says what the kernel lacks.
func Supported() error {
	all, err := link.AllSizes()
	if err == nil && len(all) > 0 && all[0].Sizes[2] == 0 { // the loopback device
		err = errNoIPv4
	}
	return err
}

// Apply raises the links with these indexes, and takes back all others that are noted. No
// size is made smaller by raising; a link that has as much already is not noted. What st
// says is what is in the store at every moment.
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
			return true // it is gone
		}
		_, others := l.Back(now.Sizes)
		return !l.Done && others // a killed toll did not come to it, and somebody else did
	})
	st.Links = slices.DeleteFunc(st.Links, func(l Link) bool {
		return !slices.Contains(want, l.Index) && out.takeBack(l, have[l.Index].Sizes)
	})
	for _, i := range want {
		now, ok := have[i]
		if !ok || slices.ContainsFunc(st.Links, func(l Link) bool { return l.Index == i }) {
			continue
		}
		if now.Sizes[2] == 0 {
			out.Failed[now.Name] = errNoIPv4
			continue
		}
		to := now.Sizes
		for k := range to {
			to[k] = max(to[k], Size)
		}
		if to != now.Sizes {
			st.Links = append(st.Links, Link{Index: i, Name: now.Name, Kind: now.Kind, Before: now.Sizes, Set: to})
		}
	}
	open := func(l Link) bool { return !l.Done }
	if !slices.ContainsFunc(st.Links, open) {
		if slices.Equal(before, st.Links) {
			return out, nil
		}
		return out, s.Save(st)
	}
	if err := s.Save(st); err != nil { // before any of them is changed
		st.Links = slices.DeleteFunc(st.Links, open)
		return out, err
	}
	st.Links = slices.DeleteFunc(st.Links, func(l Link) bool { return !l.Done && out.failed(l, link.SetSizes(l.Index, l.Set)) })
	for i := range st.Links {
		if l := &st.Links[i]; !l.Done {
			l.Done = true
			out.Raised = append(out.Raised, l.Name)
		}
	}
	return out, s.Save(st)
}

// failed notes an error, with which a link has what it had.
func (o *Outcome) failed(l Link, err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, link.ErrGone) {
		o.Failed[l.Name] = errors.Join(err, link.SetSizes(l.Index, l.Before))
	}
	return true
}

// takeBack has the link be as it was, but for what somebody else set since; false if the
// kernel refused that, and it must be tried again.
func (o *Outcome) takeBack(l Link, now link.Sizes) bool {
	to, others := l.Back(now)
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

// Back is what the link is to have when it is taken back, where it has these sizes now;
// others says that some of them are neither what it had nor what was set.
func (l Link) Back(now link.Sizes) (to link.Sizes, others bool) {
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
