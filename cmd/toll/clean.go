package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/build/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/build/lab"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func newClean(e env) *cobra.Command {
	var d dockerapi.Clean
	for _, b := range backends {
		if b.leftovers != nil {
			d.Parts = append(d.Parts, b.leftovers())
		}
	}
	c := &cobra.Command{
		Use:   "clean",
		Short: "Find and remove what a crash could have left",
		Long: `clean ends workers and proxies whose toll is gone, and removes what such a toll
made: with --on docker containers, networks and images from Docker, and devices,
bridges of Open vSwitch and a rule in DOCKER-USER from the machine; with --on
swarm services, secrets and networks, if this node manages the swarm. The lab can
leave nothing else: its namespaces have no names and the kernel removes them, with
every link, address and rule in them, when their last process ends.

It asks the Docker daemon that docker uses now, and removes only what carries toll's
label with the mark of a toll that is gone.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			killed, err := lab.Clean()
			for _, p := range killed {
				fmt.Fprintf(e.stdout, "ended process %d: %s\n", p.PID, printable.Line(p.Command))
			}
			removed, dockerErr := d.Run(c.Context())
			for _, what := range removed {
				fmt.Fprintf(e.stdout, "removed %s\n", printable.Line(what))
			}
			for _, l := range d.Left {
				fmt.Fprintf(e.stdout, "left alone: %s, %s; toll clean --others removes it\n", printable.Line(l.What), l.Why)
			}
			if err := errors.Join(err, dockerErr); err != nil {
				return err
			}
			if len(killed)+len(removed)+len(d.Left) == 0 {
				fmt.Fprintln(e.stdout, "Nothing to clean: no process of an earlier toll is left, and the lab's namespaces")
				fmt.Fprintln(e.stdout, "have no names: the kernel removes them, and all that is in them, with their processes.")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&d.Others, "others", false, "also what tolls of other machines made in this one's swarm, and those whose process cannot be seen, whether they still run or not")
	return c
}
