package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

func newFast(e env) *cobra.Command {
	c := &cobra.Command{
		Use:   "fast",
		Short: "Redirect local clients past docker-proxy, straight to containers",
		Long: `fast connects clients on this machine that dial a published TCP port on 127.0.0.1 or ::1
directly to the container, without docker-proxy: eBPF rewrites the address when a client
connects. Containers and Docker are neither restarted nor reconfigured. Connections that
cannot be redirected safely still use docker-proxy. With --parts connect,links the
machine also sends larger packets to containers (BIG TCP). When the lease expires,
everything is as before.

It needs root. docs/fastpath.md says what changes and what does not.`,
		Example: `  sudo toll fast on 8080
  sudo toll fast on all --parts connect,links
  sudo toll fast watch
  sudo toll fast status
  sudo toll fast off`,
		Args: noArguments,
		RunE: atOnce(func(*cobra.Command, []string) error {
			return usage(errors.New("toll fast needs one of on, off, status, watch"),
				"toll fast --help")
		}),
	}
	c.AddCommand(newFastOn(e), newFastOff(e), newFastStatus(e), newFastWatch(e), newFastExpire(e))
	return c
}

const minLease, maxLease = time.Second, 24 * time.Hour

func addLease(c *cobra.Command, to *time.Duration) {
	add(c.Flags(), flagDef{name: "lease", group: howLong,
		value: timeFlag(to, fast.Lease, minLease, maxLease),
		help:  "end after this time unless renewed: 1s to 24h"})
}

func asRoot(e env) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &machine.UnsupportedError{Remedy: byRoot(e),
		Missing: "only root may load BPF programs and see their maps"}
}

type onFlags struct {
	parts []string
	lease time.Duration
	out   outputFlags
}

func newFastOn(e env) *cobra.Command {
	var f onFlags
	c := &cobra.Command{
		Use:   "on PORT…|all",
		Short: "Turn it on for published ports, or for all",
		Long: `on turns fast on for published ports, or for all that containers publish now or later. The part connect redirects local clients past
docker-proxy. The part links lets the bridges of the ports' containers, and all ports of
these bridges, carry packets of up to 180000 bytes; off restores their sizes. Parts that
are not named are turned off.`,
		Example: `  sudo toll fast on 8080 5432
  sudo toll fast on 8080 --parts connect,links
  sudo toll fast on all --lease 1h`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, e, args) },
	}
	add(c.Flags(),
		flagDef{name: "parts", group: toMeasure, value: list(&f.parts, string(fast.Connect)),
			help: "what is turned on: " + strings.Join(partWords(), ", "), offer: partWords()})
	addLease(c, &f.lease)
	f.out.add(c.Flags(), document.FastState)
	return c
}

func (f *onFlags) run(c *cobra.Command, e env, args []string) error {
	if err := f.out.check(); err != nil {
		return err
	}
	want, err := parseChoice(args)
	if err != nil {
		return err
	}
	if want.Parts, err = parseParts(f.parts); err != nil {
		return err
	}
	if err := asRoot(e); err != nil {
		return err
	}
	return turnOn(c, e, &f.out, want, f.lease)
}

// turnOn turns fast on and prints the state. It changes nothing if all requested shortcuts are
// impossible.
func turnOn(c *cobra.Command, e env, out *outputFlags, want fast.Choice,
	lease time.Duration) error {
	possible := func(c *cobra.Command, _ []string) error {
		routes, links, left, err := fast.Preview(c.Context(), want)
		if err == nil && len(want.Ports) > 0 && len(routes)+len(links) == 0 {
			err = left.Refuse(want)
		}
		return err
	}
	if err := atOnce(possible)(c, nil); err != nil {
		return err
	}
	if err := fast.Enable(c.Context(), want, lease); err != nil { // it cleans up after an interrupt
		return err
	}
	return atOnce(func(c *cobra.Command, _ []string) error {
		return printOn(c.Context(), e, out, want)
	})(c, nil)
}

// printOn prints the state. It returns a *failure if some of what was chosen is not on.
func printOn(ctx context.Context, e env, out *outputFlags, want fast.Choice) error {
	s, err := fast.Look(ctx)
	if err != nil {
		return err
	}
	if err := out.print(e, view.Fast(s)); err != nil {
		return err
	}
	without := func(port uint16) bool {
		return !slices.ContainsFunc(s.Shortcuts, func(r fast.Route) bool {
			return r.Dial.Port() == port
		})
	}
	if want.With(fast.Connect) && slices.ContainsFunc(want.Ports, without) ||
		want.With(fast.Links) && len(s.LinksLeft) > 0 {
		return &failure{code: exitCells}
	}
	return nil
}

func partWords() (out []string) {
	for _, p := range fast.Parts() {
		out = append(out, string(p))
	}
	return out
}

func parseParts(words []string) (out []fast.Part, err error) {
	for _, w := range words {
		p, err := suggest.Parse("part", w, fast.Parts())
		if err != nil {
			return nil, usage(err, "--parts "+strings.Join(partWords(), ","))
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}

func parseChoice(args []string) (c fast.Choice, err error) {
	const all = "all"
	switch {
	case len(args) == 1 && args[0] == all:
		c.All = true
		return c, nil
	case len(args) == 0:
		return c, usage(errors.New("toll fast on needs ports, as toll ports lists them, or all"),
			remedy.AsRoot("toll fast on all"))
	case slices.Contains(args, all):
		return c, usage(errors.New("all includes the other ports"), remedy.AsRoot("toll fast on all"))
	}
	for _, a := range args {
		port, err := parsePort(a, remedy.AsRoot("toll fast on 8080"))
		if err != nil {
			return c, err
		}
		if !slices.Contains(c.Ports, port) {
			c.Ports = append(c.Ports, port)
		}
	}
	return c, nil
}

func newFastOff(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "off",
		Short: "Turn it off: new connections use docker-proxy again",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := asRoot(e); err != nil {
				return err
			}
			if !fast.IsOn() {
				fmt.Fprintln(e.stdout, "Fast was not on.")
				return nil
			}
			kept, err := fast.TurnOff()
			if err != nil {
				return err
			}
			say(e.stdout,
				"Fast is off. Connections that took a shortcut stay on it until they end.")
			sayKept(e, kept)
			return nil
		},
	}
}

func sayKept(e env, kept []string) {
	for _, name := range kept {
		say(e.stdout, fmt.Sprintf("Another program changed link %s, so it is not restored.",
			printable.Line(name)))
	}
}

// newFastExpire returns the hidden command whose process waits for the end of the links' lease.
func newFastExpire(e env) *cobra.Command {
	return &cobra.Command{
		Use:    "expire",
		Short:  "Wait for the end of the lease of links, and restore them",
		Hidden: true,
		Args:   noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asRoot(e); err != nil {
				return err
			}
			return fast.Expire(c.Context(), os.Stdout)
		},
	}
}

func newFastStatus(e env) *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Show which ports have a shortcut and which links are raised, and why others are not",
		Args:  noArguments,
		RunE: atOnce(func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if err := asRoot(e); err != nil {
				return err
			}
			s, err := fast.Look(c.Context())
			if err != nil {
				return err
			}
			return out.print(e, view.Fast(s))
		}),
	}
	out.add(c.Flags(), document.FastState)
	return c
}

func newFastWatch(e env) *cobra.Command {
	var lease time.Duration
	c := &cobra.Command{
		Use:   "watch",
		Short: "Follow the engine and renew the lease, until it is interrupted or turned off",
		Long: `watch renews the lease after each third of it, until it is interrupted. It follows the
events of the engine and the kernel: new containers get shortcuts and raised links,
removed ones lose them. It stays in the foreground; packages have a unit for systemd,
toll-fast.`,
		Args: noArguments,
		RunE: atOnce(func(c *cobra.Command, _ []string) error {
			if err := asRoot(e); err != nil {
				return err
			}
			f, err := fast.Open()
			if err != nil {
				return err
			}
			w := fast.Watcher{Lease: lease, Say: func(s string) {
				say(e.stdout, printable.Line(s))
			}}
			err = errors.Join(w.Run(c.Context(), f), f.Close())
			if errors.Is(err, fast.ErrOff) {
				fmt.Fprintln(e.stdout, "Fast was turned off.")
				return nil
			}
			return err
		}),
	}
	addLease(c, &lease)
	return c
}
