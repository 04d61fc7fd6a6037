package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/build/agent"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
)

// maxBundle bounds a bundle's file, in bytes: a Swarm secret is no larger.
const maxBundle = 500 << 10

// newAgent is what toll starts on other machines. Swarm fills in templates in the
// environment, but not in arguments: so the identity may come from there.
func newAgent() *cobra.Command {
	var (
		bundle, id, name string
		dial             []string
		patience         time.Duration
	)
	c := &cobra.Command{
		Use:    agent.Arg + " --bundle FILE --dial ADDRESS:PORT,… --id ID",
		Short:  "Run workers on this machine for a toll on another one",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if id == "" {
				id = os.Getenv("BRIDGETOLL_AGENT_ID")
			}
			if name == "" {
				name = os.Getenv("BRIDGETOLL_AGENT_NAME")
			}
			if bundle == "" || len(dial) == 0 || id == "" {
				return usage(errors.New("an agent needs --bundle, --dial and --id"), "toll starts agents itself")
			}
			var at []netip.AddrPort
			for _, s := range dial {
				a, err := netip.ParseAddrPort(s)
				if err != nil {
					return usage(fmt.Errorf("--dial: %w", err), "an address with a port, such as 192.0.2.1:7000")
				}
				at = append(at, a)
			}
			secret, err := readBundle(bundle)
			if err != nil {
				return err
			}
			return agent.Main(c.Context(), agent.Config{Bundle: secret, Dial: at, ID: id, Name: name, Version: version,
				Starts: []string{worker.Arg, program.Arg}, Patience: patience})
		},
	}
	f := c.Flags()
	f.StringVar(&bundle, "bundle", "", "file with the run's key")
	f.StringSliceVar(&dial, "dial", nil, "addresses of the toll that measures, tried in turn")
	f.StringVar(&id, "id", "", "the ID that this agent shows; else $BRIDGETOLL_AGENT_ID")
	f.StringVar(&name, "name", "", "the name in reports; else $BRIDGETOLL_AGENT_NAME, else the host name")
	f.Var(timeFlag(&patience, time.Minute, 0, unlimited[time.Duration]()), "patience", "how long to try")
	return c
}

// readBundle reads a bundle.
func readBundle(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxBundle {
		return nil, fmt.Errorf("%s is too large for a bundle", file)
	}
	return os.ReadFile(file)
}
