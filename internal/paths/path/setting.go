package path

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Setting is a kernel setting that affects what a path costs or where its bytes go.
type Setting struct {
	Where string `json:"where,omitempty"` // "machine A"
	Of    string `json:"of,omitempty"`    // a device, a chain of rules; "": the place
	// What names a property of Of, such as "MTU"; "": whether Of itself exists. Properties appear
	// and vanish with it.
	What  string `json:"what,omitempty"`
	Value string `json:"value"` // not empty
	// Diverts means that packets may bypass a hop because of the setting, and that no counter would
	// show it.
	Diverts bool `json:"diverts,omitempty"`
}

type id struct{ where, of, what string }

func (s Setting) id() id    { return id{s.Where, s.Of, s.What} }
func (s Setting) thing() id { return id{s.Where, s.Of, ""} }

func (s Setting) name() string {
	switch {
	case s.What == "":
		return s.Of
	case s.Of == "":
		return s.What
	}
	return s.What + " of " + s.Of
}

// Differences returns the changed settings in order. If a device or chain itself was added or
// removed, it leaves out the properties.
func Differences(was, is []Setting) []sample.Difference {
	before, after := byID(was), byID(is)
	var out []sample.Difference
	add := func(s Setting, was, is string) {
		if was == is {
			return
		}
		if t := s.thing(); s.What != "" && s.Of != "" && (before[t] == "") != (after[t] == "") {
			return
		}
		out = append(out, sample.Difference{Where: s.Where, What: s.name(), Was: was, Is: is})
	}
	for _, s := range was {
		add(s, s.Value, after[s.id()])
	}
	for _, s := range is {
		if _, ok := before[s.id()]; !ok {
			add(s, "", s.Value)
		}
	}
	return out
}

func byID(all []Setting) map[id]string {
	out := make(map[id]string, len(all))
	for _, s := range all {
		out[s.id()] = s.Value
	}
	return out
}

// Undiverted returns a *machine.UnsupportedError if, because of a setting, packets may bypass a
// hop's counters.
func Undiverted(all []Setting) error {
	var found []string
	for _, s := range all {
		if s.Diverts {
			found = append(found, fmt.Sprintf("%s (%s): %s", s.name(), s.Where, s.Value))
		}
	}
	if len(found) == 0 {
		return nil
	}
	const most = 3
	if more := len(found) - most; more > 0 {
		found = append(slices.Clone(found[:most]), fmt.Sprintf("and %d more", more))
	}
	return &machine.UnsupportedError{
		Missing: "packets may bypass the hops, unseen by their counters, because of: " +
			strings.Join(found, "; "),
		Remedy: "remove it from the device, or stop the program that attaches it, such as an eBPF data plane or a monitoring agent",
	}
}
