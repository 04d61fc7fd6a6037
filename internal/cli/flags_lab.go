package cli

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type labFlags struct {
	wire              *string // shared with the plan
	proxy, congestion string
}

func (f *labFlags) add(fl *pflag.FlagSet, k commandKind) {
	if k >= buildsPath {
		fl.StringVar(
			f.wire, "wire", "",
			"the link between the two machines: rate=10gbit,mtu=1500,delay=50us (default as fast as possible)")
		fl.StringVar(
			&f.proxy, "proxy", "",
			`docker-proxy to use: a file, "own", or "off" for publish without it (default the installed one, else own)`)
	}
	if k >= comparesRuns {
		fl.StringVar(&f.congestion, "congestion", "",
			"TCP congestion control, such as cubic or reno (default the machine's, as in containers)")
	}
}

func (f *labFlags) defaults([]string) (*defaults, error) { return nil, nil }

func (f *labFlags) check() error { return nil }

func (f *labFlags) with(ctx context.Context, wire sample.Wire, use func(path.Builder) error) error {
	l := &lab.Lab{ProxyPath: f.proxy, Congestion: f.congestion, Wire: wire}
	return inLab(ctx, l, func() error { return use(l) })
}
