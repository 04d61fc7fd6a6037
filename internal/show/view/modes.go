package view

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Mode is a network mode, and which of its paths can be built here.
type Mode struct {
	Mode    string `json:"mode"`
	Summary string `json:"summary"`
	Engine  string `json:"engine"` // "Docker" or "Podman": whose options the field Docker has
	Docker  string `json:"docker"`
	GivesUp string `json:"gives_up"`
	Caveat  string `json:"caveat,omitempty"`
	Usual   bool   `json:"usual"` // compared if no mode is named
	// Rootless means that the mode belongs to engines without root.
	Rootless bool         `json:"rootless,omitempty"`
	Paths    []ModePath   `json:"paths"`
	Decides  string       `json:"decides,omitempty"` // between the hops of a path and their alternative
	Apart    []mode.Apart `json:"apart,omitempty"`
	No6      string       `json:"no_ipv6,omitempty"` // why IPv6 has no path
}

// ModePath is a path of a mode.
type ModePath struct {
	From mode.Placement `json:"from"`
	To   string         `json:"to"`
	Hops []mode.HopKind `json:"hops"`
	// Or has the hops if the engine has the other value of the setting that Decides names.
	Or      []mode.HopKind `json:"or_hops,omitempty"`
	Here    bool           `json:"can_be_built_here"`
	Missing string         `json:"missing,omitempty"`
	Remedy  string         `json:"remedy,omitempty"`
}

// Modes says what each mode gives up, its paths, and what is missing for them.
func Modes(list []Mode) document.Document {
	d := document.Document{Kind: document.ModeList, JSON: list,
		Page: headed("Network modes", "toll modes")}
	for _, m := range list {
		d.Add(modeSection(m))
	}
	return d
}

// ModeLines has a line for each mode, and what is missing here.
func ModeLines(list []Mode) document.Document {
	modes := document.Section{Title: document.Strongly("Network modes")}
	t := document.Table{Level: 1, Columns: []document.Column{{Head: [2]string{"", "mode"}},
		{Head: [2]string{"", "in Docker's or Podman's words"}, Cut: document.CutEnd, Least: 12},
		{Head: [2]string{"", "here"}}}}
	var missing byReason
	for _, m := range list {
		lacks := 0
		for _, p := range m.Paths {
			if !p.Here {
				lacks++
				missing.add(p.why(), m.Mode)
			}
		}
		here := "yes"
		switch {
		case lacks == len(m.Paths):
			here = "no"
		case lacks > 0:
			here = "in part"
		case m.Usual:
			here = "usual"
		}
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(m.Mode, m.Docker, here)})
	}
	modes.Add(t)
	d := document.Document{Kind: document.ModeList, JSON: list,
		Page:     headed("Network modes", "toll modes"),
		Sections: []document.Section{modes}}
	if len(missing) > 0 {
		not := document.Section{Title: document.Strongly("Not here")}
		for _, r := range missing {
			of := printable.List(r.of)
			if len(list) > 1 && len(r.of) == len(list) {
				of = "all"
			}
			not.Add(paragraph(1, of+": "+r.why))
		}
		d.Add(not)
	}
	d.Add(section(nil, paragraph(1,
		"usual: compared if no mode is named. toll modes MODE… has what these modes give up, and "+
			"their paths; --details those of all.")))
	return d
}

// joined merges paths of one placement that have the same hops.
func joined(paths []ModePath) []ModePath {
	var out []ModePath
	for _, p := range paths {
		i := slices.IndexFunc(out, func(o ModePath) bool {
			return o.From == p.From && slices.Equal(o.Hops, p.Hops) && slices.Equal(o.Or, p.Or)
		})
		if i < 0 {
			out = append(out, p)
		} else {
			out[i].To += ", " + p.To
		}
	}
	order := mode.Placements()
	slices.SortStableFunc(out, func(a, b ModePath) int {
		return slices.Index(order, a.From) - slices.Index(order, b.From)
	})
	return out
}

func modeSection(m Mode) document.Section {
	out := document.Section{Title: document.Plainly(m.Mode)}
	if m.Usual {
		out.Title = out.Title.Then("  (usual: compared if no mode is named)", document.Plain)
	}
	if m.Rootless {
		out.Title = out.Title.Then("  (of rootless engines)", document.Plain)
	}
	say := func(text string) { out.Add(paragraph(1, text)) }
	say(m.Summary)
	say(m.Engine + ": " + m.Docker)
	if m.GivesUp != "nothing" || m.Caveat == "" {
		say("gives up: " + m.GivesUp)
	}
	if m.Caveat != "" {
		say("note: " + m.Caveat)
	}
	routes := document.Table{Level: 1, Columns: []document.Column{{Width: 21}, {Gap: 1}, {}}}
	for _, p := range joined(m.Paths) {
		by := mode.Route{Hops: p.Hops}.String()
		if len(p.Or) > 0 {
			by += " or " + mode.Route{Hops: p.Or}.String()
		}
		routes.Rows = append(routes.Rows, document.Row{
			Cells: document.Texts("from "+string(p.From), "to "+p.To, by)})
	}
	out.Add(routes)
	if m.Decides != "" {
		say("or: what decides is " + m.Decides)
	}
	if m.No6 != "" {
		say("not over IPv6: " + m.No6)
	}
	var apart, missing byReason
	for _, a := range m.Apart {
		apart.add(a.Why+"; instead: "+a.Around, string(a.From))
	}
	for _, p := range m.Paths {
		if !p.Here {
			missing.add(p.why(), "from "+string(p.From)+" to "+p.To)
		}
	}
	for _, r := range apart {
		say("not from " + printable.List(r.of) + ": " + r.why)
	}
	for _, r := range missing {
		of := " " + printable.List(r.of)
		if len(r.of) == len(m.Paths) {
			of = ""
		}
		say("not here" + of + ": " + r.why)
	}
	return out
}

type reason struct {
	why string
	of  []string // each once
}

// byReason holds reasons in the order in which they were added.
type byReason []reason

func (r *byReason) add(why, of string) {
	i := slices.IndexFunc(*r, func(x reason) bool { return x.why == why })
	if i < 0 {
		i = len(*r)
		*r = append(*r, reason{why: why})
	}
	if x := &(*r)[i]; !slices.Contains(x.of, of) {
		x.of = append(x.of, of)
	}
}

func (p ModePath) why() string {
	if p.Remedy == "" {
		return p.Missing
	}
	return p.Missing + "; hint: " + p.Remedy
}
