package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/ports/collect"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

func newPorts(e env) *cobra.Command {
	var out outputFlags
	var results, client string
	c := &cobra.Command{
		Use:   "ports [PORT]",
		Short: "Show who answers each port, and by which route",
		Long: `ports lists every port that answers on this machine: who serves it, who holds the
socket, and which route a client takes from 127.0.0.1, ::1, the machine's own
address, a container and another machine. It names traps, with evidence and remedy.
With a port it draws each route, and checks those of this machine by connecting.

It changes nothing. Without root it says what it could not see.`,
		Example: `  toll ports
  toll ports 8080
  toll ports --client 203.0.113.7
  toll ports --results run.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(fmt.Errorf("ports takes one port, %d were given", len(args)),
					"toll ports "+args[0])
			}
			return nil
		},
		RunE: atOnce(func(c *cobra.Command, args []string) error {
			if err := out.check(place{"results", results}); err != nil {
				return err
			}
			var port uint16 // 0: all
			if len(args) > 0 {
				var err error
				if port, err = parsePort(args[0], "toll ports 8080"); err != nil {
					return err
				}
			}
			r, err := readPorts(c, e, port, results, client)
			if err != nil {
				return err
			}
			err = out.print(e, view.Ports(r))
			if err == nil && port != 0 && !r.Served() {
				err = &failure{code: exitCells}
			}
			return err
		}),
	}
	c.Flags().StringVar(&results, "results", "",
		"a results file that says what such paths cost (toll compare --save)")
	c.Flags().StringVar(&client, "client", "", "the `ADDRESS` of the other machine (default any)")
	out.add(c.Flags(), document.PortList)
	return c
}

// readPorts also connects to the port if it is not 0. It reads the results file, if given, first.
func readPorts(c *cobra.Command, e env, port uint16,
	results, client string) (*ports.Report, error) {
	from, err := parseClient(client)
	if err != nil {
		return nil, err
	}
	var judged *analysis.Report
	if results != "" {
		f, err := readResults(e, results, c.InOrStdin())
		if err != nil {
			return nil, err
		}
		judged = judgeFile(e, f).Base()
	}
	facts, err := collect.Facts(c.Context())
	if err != nil {
		return nil, err
	}
	if from.IsValid() {
		if err := facts.CheckClient(from); err != nil {
			return nil, usage(fmt.Errorf("--client: %w", err), "toll ports --client 203.0.113.1")
		}
	}
	facts.Client = from
	r := ports.Judge(facts, port)
	if port != 0 {
		collect.Check(c.Context(), r)
	}
	if judged != nil {
		r.Price(results, judged)
	}
	return r, nil
}

func parseClient(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if a = a.Unmap(); err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() ||
		a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return a, usage(fmt.Errorf("--client %q is not an address of a machine", s),
			"toll ports --client 203.0.113.1")
	}
	return a, nil
}

// example is a valid command line for the hint.
func parsePort(word, example string) (uint16, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(word, ":"), 10, 16)
	if err != nil || n == 0 {
		return 0, usage(fmt.Errorf("%q is not a port: must be from 1 to 65535", word), example)
	}
	return uint16(n), nil
}
