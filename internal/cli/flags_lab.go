package cli

import (
	"context"
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
	own := func(from commandKind, x flagDef) {
		if x.group, x.of = where, []string{sample.Lab}; k >= from {
			add(fl, x)
		}
	}
	own(buildsPath, flagDef{name: "wire", value: text(f.wire, ""), word: "WIRE",
		help: "the link between the two machines: rate=10gbit,mtu=1500,delay=50us (default as fast as possible)"})
	own(comparesRuns, flagDef{name: "congestion", value: text(&f.congestion, ""), word: "NAME",
		help: "TCP congestion control, such as cubic or reno (default the machine's, as in containers)"})
	own(buildsPath, flagDef{name: proxyFlag, value: text(&f.proxy, ""), word: "FILE", use: trusts,
		help:  `docker-proxy to use: a file, "own", or "off" for publish without it (default the installed one, else own)`,
		offer: ownProxies})
	own(checksPaths, flagDef{name: "engine", value: text(&f.rules.engine, ""), word: "NAME", main: "path",
		help: "the Docker Engine whose rules the machines have: " + strings.Join(mode.Engines, ", ") +
			" (default " + mode.DefaultEngine + ")", offer: mode.Engines})
	own(buildsPath, flagDef{name: "ports", value: wholeFlag(&f.rules.ports, 0, 0, mode.MaxPorts),
		help: "other published ports of the server's machine, each of a container of its own"})
}

const proxyFlag = "proxy"

// ownProxies are the values of --proxy that name no file.
var ownProxies = []string{"own", "off"}

func (f *labFlags) defaults([]string) (*defaults, error) { return nil, nil }

var parseEngine = closed("engine", mode.Engines...)

func (f *labFlags) check() error {
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
