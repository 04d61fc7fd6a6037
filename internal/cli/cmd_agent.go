package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent/box"
)

// newAgent returns the hidden command agent. Swarm expands templates in the environment but not in
// arguments, so the ID may come from the environment.
func newAgent() *cobra.Command {
	var (
		bundle, id, name string
		stdio            string
		remove           bool
		dial             []string
		patience, sit    time.Duration
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
			if sit > 0 {
				return agent.Sit(c.Context(), sit)
			}
			if stdio != "" {
				return peerAgent(c.Context(), stdio, remove)
			}
			if bundle == "" || len(dial) == 0 || id == "" {
				return usage(errors.New("an agent needs --bundle, --dial and --id"),
					"toll starts agents itself")
			}
			var at []netip.AddrPort
			for _, s := range dial {
				a, err := netip.ParseAddrPort(s)
				if err != nil {
					return usage(fmt.Errorf("--dial: %w", err),
						"an address with a port, such as 192.0.2.1:7000")
				}
				at = append(at, a)
			}
			secret, err := readBundle(bundle)
			if err != nil {
				return err
			}
			return agent.Main(c.Context(), agent.Config{
				Bundle: secret, Dial: at, ID: id, Name: name, Version: version,
				Starts: []string{worker.Arg, program.Arg}, Patience: patience})
		},
	}
	f := c.Flags()
	f.StringVar(&bundle, "bundle", "", "file with the run's key")
	f.StringSliceVar(&dial, "dial", nil, "addresses of the toll that measures, tried in turn")
	f.StringVar(&id, "id", "", "this agent's ID (default $BRIDGETOLL_AGENT_ID)")
	f.StringVar(
		&name, "name", "", "the name in reports (default $BRIDGETOLL_AGENT_NAME, or the host name)")
	f.StringVar(&stdio, "stdio", "",
		"talk to the hub over standard input and output, as the agent with this ID")
	f.BoolVar(&remove, "remove", false, "with --stdio: remove this program and its directory, now")
	f.Var(timeFlag(&sit, 0, 0, unlimited[time.Duration]()), "sit",
		"run as a container's first process, and exit when no agent has run for this long")
	f.Var(timeFlag(&patience, time.Minute, 0, unlimited[time.Duration]()), "patience",
		"how long to try to reach the toll that measures")
	return c
}

func readBundle(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > agent.MaxBundle {
		return nil, fmt.Errorf("%s is too large for a bundle", file)
	}
	return os.ReadFile(file)
}

// peerAgent runs an agent on standard input and output.
func peerAgent(ctx context.Context, id string, remove bool) error {
	if remove {
		if err := removeSelf(); err != nil {
			return err
		}
	}
	engine := &box.Engine{}
	return agent.Stdio(ctx, agent.Config{ID: id, Version: version,
		Starts: []string{worker.Arg, program.Arg, endpoint.Arg, observe.Arg}, Engine: engine,
		Router: engine})
}

// removeSelf removes this program's file and directory. The kernel keeps the file for processes
// that run it.
func removeSelf() error {
	file, err := os.Executable()
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(file), os.Remove(filepath.Dir(file)))
}
