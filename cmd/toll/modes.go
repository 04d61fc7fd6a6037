package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/printable"
	"github.com/bridgetoll/bridgetoll/internal/report"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// modeInfo is a mode as `toll modes --format json` prints it.
type modeInfo struct {
	Mode    string      `json:"mode"`
	Summary string      `json:"summary"`
	Docker  string      `json:"docker"`
	GivesUp string      `json:"gives_up"`
	Usual   bool        `json:"usual"` // compared if no mode is named
	Paths   []routeInfo `json:"paths"`
	Apart   []apartInfo `json:"apart,omitempty"`
}

// apartInfo is a placement from which the mode cannot be reached anywhere.
type apartInfo struct {
	From   string `json:"from"`
	Why    string `json:"why"`
	Around string `json:"way_round"`
}

type routeInfo struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Hops    []string `json:"hops"`
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
		Short: "List the network modes and whether each can be built here",
		Example: `  toll modes
  toll modes overlay ipvlan-l2
  sudo toll modes --on docker --parent eth0`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			names, err := parseModes(args)
			if err != nil {
				return err
			}
			on, err := f.one()
			if err != nil {
				return err
			}
			if err := pathRoom(); err != nil {
				return err
			}
			return f.with(c.Context(), []string{on}, sample.Wire{}, func(b []path.Builder) error {
				list := checkModes(c.Context(), b[0], names)
				return out.write(e, func(w io.Writer) error {
					if out.format == "json" {
						return writeJSON(w, list)
					}
					printModes(w, list)
					return nil
				})
			})
		},
	}
	f.addBuilder(c.Flags())
	out.add(c.Flags())
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("%s takes no arguments, %q was given", c.CommandPath(), args[0]), "see "+c.CommandPath()+" --help")
	}
	return nil
}

// checkModes checks every path of the modes called names; of all modes if
// there are none.
func checkModes(ctx context.Context, b path.Builder, names []mode.Name) []modeInfo {
	var out []modeInfo
	for _, m := range mode.Catalogue {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		info := modeInfo{Mode: string(m.Name), Summary: m.Summary, Docker: m.Docker, GivesUp: m.GivesUp, Usual: m.Usual}
		for _, a := range m.Apart {
			info.Apart = append(info.Apart, apartInfo{string(a.From), a.Why, a.Around})
		}
		for _, r := range m.Routes {
			ri := routeInfo{From: string(r.From), To: string(r.To), Here: true}
			for _, h := range r.Hops {
				ri.Hops = append(ri.Hops, string(h))
			}
			if err := b.Check(ctx, path.Spec{Mode: m.Name, From: r.From, To: r.To}); err != nil {
				ri.Here, ri.Missing = false, err.Error()
				var u *path.UnsupportedError
				if errors.As(err, &u) {
					ri.Remedy = u.Remedy
				}
			}
			info.Paths = append(info.Paths, ri)
		}
		out = append(out, info)
	}
	printable.Fields(&out) // what an engine says is missing
	return out
}

// modesWidth is how wide the list is at most, in columns.
const modesWidth = 98

func printModes(w io.Writer, list []modeInfo) {
	for i, m := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		name := m.Mode
		if m.Usual {
			name += "  (usual: compared if no mode is named)"
		}
		fmt.Fprintln(w, name)
		fmt.Fprintf(w, "  %s\n", m.Summary)
		fmt.Fprintf(w, "  Docker: %s\n", m.Docker)
		paragraph(w, "gives up: "+m.GivesUp)
		for _, p := range m.Paths {
			fmt.Fprintf(w, "  from %-16s to %-9s  %s\n", p.From, p.To, strings.Join(p.Hops, "·"))
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
			paragraph(w, "not from "+report.List(r.of)+": "+r.why)
		}
		for _, r := range missing {
			of := " " + report.List(r.of)
			if len(r.of) == len(m.Paths) {
				of = ""
			}
			paragraph(w, "not here"+of+": "+r.why)
		}
	}
}

// reasons are what has the same reason, in the order in which these came.
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
	return r.Missing + "; try " + r.Remedy
}

func paragraph(w io.Writer, text string) {
	fmt.Fprint(w, report.Wrapped("  ", text, modesWidth))
}
