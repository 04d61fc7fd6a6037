package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

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
			list := func(b path.Builder) error {
				list := checkModes(c.Context(), b, names)
				if stop := interrupted(c.Context()); stop != nil {
					return stop
				}
				if len(args) > 0 || out.whole() {
					return out.print(e, view.Modes(list))
				}
				return out.print(e, view.ModeLines(list))
			}
			err = f.with(c.Context(), []string{on}, sample.Wire{}, func(b []path.Builder) error {
				return list(b[0])
			})
			if on == sample.Lab && errors.Is(err, machine.ErrUnsupported) {
				return list(refusing{err: err})
			}
			return err
		},
	}
	f.addBuilder(c.Flags(), checksPaths)
	out.addMore(c.Flags(), "also print what each mode gives up, and its paths")
	out.add(c.Flags(), document.ModeList)
	return c
}

// refusing is a lab that cannot be had here.
type refusing struct {
	path.Builder
	err error
}

func (r refusing) Check(context.Context, path.Spec) error { return r.err }

// checkModes returns the named modes, or all if none is named, with what can be built here. It
// returns an incomplete list once ctx has ended.
func checkModes(ctx context.Context, b path.Builder, names []mode.Name) []view.Mode {
	var out []view.Mode
	for _, m := range mode.All() {
		if ctx.Err() != nil {
			break
		}
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		info := view.Mode{Mode: string(m.Name), Summary: m.Summary, Docker: m.Docker,
			GivesUp: m.GivesUp(), Caveat: m.Caveat, Usual: m.Usual, No6: m.No6, Engine: m.Engine(),
			Decides: m.Decides, Rootless: m.Rootless, Apart: slices.Clone(m.Apart)}
		for _, r := range m.Routes {
			ri := view.ModePath{From: r.From, To: string(r.To), Hops: slices.Clone(r.Hops), Here: true}
			if ways := m.RoutesTo(r.From, r.To); len(ways) > 1 && !r.To.Outside() {
				ri.Or = slices.Clone(ways[1].Hops)
			}
			if err := b.Check(ctx, path.Spec{Mode: m.Name, From: r.From, To: r.To}); err != nil {
				ri.Here, ri.Missing, ri.Remedy = false, path.OneLine(err), hint.Of(err)
			}
			info.Paths = append(info.Paths, ri)
		}
		out = append(out, info)
	}
	printable.Fields(&out) // including what engines report
	return out
}
