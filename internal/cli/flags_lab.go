package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type labFlags struct {
	wire              *string // shared with the plan
	rules             *labRules
	proxy, congestion string
}

// labRules are the values of --engine and --ports.
type labRules struct {
	engine string
	ports  int
}

func (f *labFlags) add(fl *pflag.FlagSet, k commandKind) {
	fl.StringVar(&f.rules.engine, "engine", "",
		"the Docker Engine whose rules the machines have: "+strings.Join(mode.Engines, ", ")+
			" (default "+mode.DefaultEngine+")")
	offer(fl, "engine", mode.Engines)
	if k >= buildsPath {
		fl.StringVar(
			f.wire, "wire", "",
			"the link between the two machines: rate=10gbit,mtu=1500,delay=50us (default as fast as possible)")
		fl.StringVar(
			&f.proxy, "proxy", "",
			`docker-proxy to use: a file, "own", or "off" for publish without it (default the installed one, else own)`)
		fl.IntVar(&f.rules.ports, "ports", 0,
			"other published ports of the server's machine, each of a container of its own")
	}
	if k >= comparesRuns {
		fl.StringVar(&f.congestion, "congestion", "",
			"TCP congestion control, such as cubic or reno (default the machine's, as in containers)")
	}
}

func (f *labFlags) defaults([]string) (*defaults, error) { return nil, nil }

var parseEngine = closed("engine", mode.Engines...)

func (f *labFlags) check() error {
	if n := f.rules.ports; n < 0 || n > mode.MaxPorts {
		return usage(fmt.Errorf("--ports must be from 0 to %d, %d was given", mode.MaxPorts, n), "")
	}
	if f.rules.engine == "" {
		return nil
	}
	_, err := parseOne(f.rules.engine, parseEngine)
	return err
}

// rulesInto records the rules that were asked for in a plan with cells of the lab.
func (f *builderFlags) rulesInto(p *sample.Plan, on []string) {
	if slices.Contains(on, sample.Lab) {
		p.Engine, p.Ports = f.rules.engine, f.rules.ports
	}
}

func (f *labFlags) with(ctx context.Context, wire sample.Wire, use func(path.Builder) error) error {
	l := &lab.Lab{ProxyPath: f.proxy, Congestion: f.congestion, Wire: wire,
		Engine: f.rules.engine, Ports: f.rules.ports}
	return inLab(ctx, l, func() error { return use(l) })
}
