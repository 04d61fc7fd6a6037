package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type modeInfo struct {
	Mode    string `json:"mode"`
	Summary string `json:"summary"`
	Engine  string `json:"engine"` // "Docker" or "Podman": whose options the field Docker has
	Docker  string `json:"docker"`
	GivesUp string `json:"gives_up"`
	Caveat  string `json:"caveat,omitempty"`
	Usual   bool   `json:"usual"` // compared if no mode is named
	// Rootless means that the mode belongs to engines without root.
	Rootless bool        `json:"rootless,omitempty"`
	Paths    []routeInfo `json:"paths"`
	Decides  string      `json:"decides,omitempty"` // between the hops of a path and their alternative
	Apart    []apartInfo `json:"apart,omitempty"`
	No6      string      `json:"no_ipv6,omitempty"` // why IPv6 has no path
}

type apartInfo struct {
	From   string `json:"from"`
	Why    string `json:"why"`
	Around string `json:"way_round"`
}

type routeInfo struct {
	From string   `json:"from"`
	To   string   `json:"to"`
	Hops []string `json:"hops"`
	// Or has the hops if the engine has the other value of the setting that Decides names.
	Or      []string `json:"or_hops,omitempty"`
	Here    bool     `json:"can_be_built_here"`
	Missing string   `json:"missing,omitempty"`
	Remedy  string   `json:"remedy,omitempty"`
}

func newModes(e env) *cobra.Command {
	var (
		f   builderFlags
		out outputFlags
	)
	c := &cobra.Command{
		Use:   "modes [MODE…]",
		Short: "List the network modes, and whether each can be built here",
		Long: `modes lists the network modes, a line for each, and what is missing where a path cannot be
built here. Of the named modes, or of all with --details, it also says what they give up, and has
their paths.`,
		Example: `  toll modes
  toll modes overlay ipvlan-l2
  sudo toll modes --on docker --parent eth0`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			on, err := f.one()
			if err != nil {
				return err
			}
			names, err := parseModes(args, []string{on})
			if err != nil {
				return err
			}
			if len(names) == 0 {
				names = modesOn([]string{on})
			}
			if err := pathHeadroom(); err != nil {
				return err
			}
			return f.with(c.Context(), []string{on}, sample.Wire{}, func(b []path.Builder) error {
				list := checkModes(c.Context(), b[0], names)
				if stop := interrupted(c.Context()); stop != nil {
					return stop
				}
				if len(args) > 0 || out.whole() {
					return out.print(e, modesDocument(list))
				}
				return out.print(e, modeLines(list))
			})
		},
	}
	f.addBuilder(c.Flags(), checksPaths)
	out.addMore(c.Flags(), "also print what each mode gives up, and its paths")
	out.add(c.Flags(), document.ModeList)
	return c
}

// checkModes returns the named modes, or all if none is named, with what can be built here. It
// returns an incomplete list once ctx has ended.
func checkModes(ctx context.Context, b path.Builder, names []mode.Name) []modeInfo {
	var out []modeInfo
	for _, m := range mode.All() {
		if ctx.Err() != nil {
			break
		}
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		info := modeInfo{Mode: string(m.Name), Summary: m.Summary, Docker: m.Docker,
			GivesUp: m.GivesUp(), Caveat: m.Caveat, Usual: m.Usual, No6: m.No6, Engine: m.Engine(),
			Decides: m.Decides, Rootless: m.Rootless}
		for _, a := range m.Apart {
			info.Apart = append(info.Apart, apartInfo{string(a.From), a.Why, a.Around})
		}
		for _, r := range m.Routes {
			ri := routeInfo{From: string(r.From), To: string(r.To), Here: true}
			ri.Hops = kinds(r)
			if ways := m.RoutesTo(r.From, r.To); len(ways) > 1 && !r.To.Outside() {
				ri.Or = kinds(ways[1])
			}
			if err := b.Check(ctx, path.Spec{Mode: m.Name, From: r.From, To: r.To}); err != nil {
				ri.Here, ri.Missing = false, path.OneLine(err)
				var u *machine.UnsupportedError
				if errors.As(err, &u) {
					ri.Remedy = u.Remedy
				}
			}
			info.Paths = append(info.Paths, ri)
		}
		out = append(out, info)
	}
	printable.Fields(&out) // including what engines report
	return out
}

func kinds(r mode.Route) []string {
	out := make([]string, len(r.Hops))
	for i, h := range r.Hops {
		out[i] = string(h)
	}
	return out
}

func modesDocument(list []modeInfo) document.Document {
	d := document.Document{Kind: document.ModeList, JSON: list}
	for _, m := range list {
		d.Sections = append(d.Sections, modeSection(m))
	}
	return d
}

// modeLines returns a line for each mode, and what is missing here.
func modeLines(list []modeInfo) document.Document {
	d := document.Document{Kind: document.ModeList, JSON: list}
	t := document.Table{Level: 1, Columns: []document.Column{{Head: [2]string{"", "mode"}},
		{Head: [2]string{"", "in Docker's or Podman's words"}, Cut: document.CutEnd, Least: 12},
		{Head: [2]string{"", "here"}}}}
	var missing reasons
	for _, m := range list {
		var whys []string
		lacks := 0
		for _, p := range m.Paths {
			if p.Here {
				continue
			}
			if lacks++; !slices.Contains(whys, p.why()) {
				whys = append(whys, p.why())
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
	modes := document.Section{Title: document.Strongly("Network modes")}
	modes.Add(t)
	d.Sections = append(d.Sections, modes)
	if len(missing) > 0 {
		not := document.Section{Title: document.Strongly("Not here")}
		for _, r := range missing {
			not.Add(document.Paragraph{Level: 1, Break: document.Words,
				Text: document.Plainly(printable.List(r.of) + ": " + r.why)})
		}
		d.Sections = append(d.Sections, not)
	}
	d.Sections = append(d.Sections, document.Section{Blocks: []document.Block{
		document.Paragraph{Level: 1, Break: document.Words, Text: document.Plainly(
			"usual: compared if no mode is named. toll modes MODE… has what these modes give up, and " +
				"their paths; --details those of all.")}}})
	return d
}

// joined merges paths of one placement that have the same hops.
func joined(paths []routeInfo) []routeInfo {
	var out []routeInfo
	for _, p := range paths {
		i := slices.IndexFunc(out, func(o routeInfo) bool {
			return o.From == p.From && slices.Equal(o.Hops, p.Hops) && slices.Equal(o.Or, p.Or)
		})
		if i < 0 {
			out = append(out, p)
		} else {
			out[i].To += ", " + p.To
		}
	}
	order := mode.Placements()
	slices.SortStableFunc(out, func(a, b routeInfo) int {
		return slices.Index(order, mode.Placement(a.From)) - slices.Index(
			order, mode.Placement(b.From))
	})
	return out
}

func modeSection(m modeInfo) document.Section {
	out := document.Section{Title: document.Plainly(m.Mode)}
	if m.Usual {
		out.Title = out.Title.Then("  (usual: compared if no mode is named)", document.Plain)
	}
	if m.Rootless {
		out.Title = out.Title.Then("  (of rootless engines)", document.Plain)
	}
	say := func(text, breaks string) {
		out.Add(document.Paragraph{Level: 1, Text: document.Plainly(text), Break: breaks})
	}
	say(m.Summary, document.Words)
	say(m.Engine+": "+m.Docker, document.Words)
	if m.GivesUp != "nothing" || m.Caveat == "" {
		say("gives up: "+m.GivesUp, document.Words)
	}
	if m.Caveat != "" {
		say("note: "+m.Caveat, document.Words)
	}
	routes := document.Table{Level: 1, Columns: []document.Column{{Width: 21}, {Gap: 1}, {}}}
	for _, p := range joined(m.Paths) {
		by := strings.Join(p.Hops, "·")
		if len(p.Or) > 0 {
			by += " or " + strings.Join(p.Or, "·")
		}
		routes.Rows = append(routes.Rows, document.Row{
			Cells: document.Texts("from "+p.From, "to "+p.To, by)})
	}
	out.Add(routes)
	if m.Decides != "" {
		say("or: what decides is "+m.Decides, document.Words)
	}
	if m.No6 != "" {
		say("not over IPv6: "+m.No6, document.Words)
	}
	var apart, missing reasons
	for _, a := range m.Apart {
		apart.add(a.Why+"; instead: "+a.Around, a.From)
	}
	for _, p := range m.Paths {
		if !p.Here {
			missing.add(p.why(), "from "+p.From+" to "+p.To)
		}
	}
	for _, r := range apart {
		say("not from "+printable.List(r.of)+": "+r.why, document.Words)
	}
	for _, r := range missing {
		of := " " + printable.List(r.of)
		if len(r.of) == len(m.Paths) {
			of = ""
		}
		say("not here"+of+": "+r.why, document.Words)
	}
	return out
}

// reasons maps reasons to modes, in the order in which they were added.
type reasons []struct {
	why string
	of  []string
}

func (r *reasons) add(why, of string) {
	for i := range *r {
		if (*r)[i].why == why {
			(*r)[i].of = append((*r)[i].of, of)
			return
		}
	}
	*r = append(*r, struct {
		why string
		of  []string
	}{why, []string{of}})
}

func (r routeInfo) why() string {
	if r.Remedy == "" {
		return r.Missing
	}
	return r.Missing + "; hint: " + r.Remedy
}
