package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/lab"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// modeInfo is a mode as `toll modes --format json` prints it.
type modeInfo struct {
	Mode    string      `json:"mode"`
	Summary string      `json:"summary"`
	Docker  string      `json:"docker"`
	GivesUp string      `json:"gives_up"`
	Paths   []routeInfo `json:"paths"`
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
	var out outputFlags
	c := &cobra.Command{
		Use:   "modes",
		Short: "List the network modes and whether each can be built here",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l := &lab.Lab{}
			return inLab(c.Context(), l, func() error {
				list := checkModes(c.Context(), l)
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
	out.add(c.Flags())
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("%s takes no arguments, %q was given", c.CommandPath(), args[0]), "see "+c.CommandPath()+" --help")
	}
	return nil
}

func checkModes(ctx context.Context, b path.Builder) []modeInfo {
	var out []modeInfo
	for _, m := range mode.Catalogue {
		info := modeInfo{Mode: string(m.Name), Summary: m.Summary, Docker: m.Docker, GivesUp: m.GivesUp}
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
	return out
}

func printModes(w io.Writer, list []modeInfo) {
	for i, m := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", m.Mode)
		fmt.Fprintf(w, "  %s\n", m.Summary)
		fmt.Fprintf(w, "  Docker: %s\n", m.Docker)
		fmt.Fprintf(w, "  gives up: %s\n", m.GivesUp)
		for _, p := range m.Paths {
			here := "can be built here"
			if !p.Here {
				here = "not here: " + p.Missing
				if p.Remedy != "" {
					here += "; try " + p.Remedy
				}
			}
			fmt.Fprintf(w, "  from %-10s to %-10s %-30s %s\n", p.From, p.To, strings.Join(p.Hops, "·"), here)
		}
	}
}
