package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/docker"
	"github.com/bridgetoll/bridgetoll/internal/lab"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/swarm"
)

// builderFlags say who builds the modes, and how.
type builderFlags struct {
	on                []string
	wire              string
	proxy, congestion string
	parent            string
	keepImage         bool
	swarm             swarmFlags
}

// addBuilders adds the flags of commands that measure, which may compare backends.
func (f *builderFlags) addBuilders(fl *pflag.FlagSet) {
	f.addWire(fl)
	fl.StringSliceVar(&f.on, "on", []string{onLab}, "who builds the modes: lab, docker (a real Docker Engine on this machine; needs root), swarm (between the nodes of a Docker Swarm), or several: lab,docker")
	f.addDocker(fl)
	fl.BoolVar(&f.keepImage, "keep-image", false, "docker: leave toll's image there for the next run")
	f.swarm.add(fl)
	f.addProxy(fl)
	fl.StringVar(&f.congestion, "congestion", "", "TCP congestion control, such as cubic or reno (default the machine's, as in containers)")
}

// addBuilder adds the flags of commands that show what one backend builds.
func (f *builderFlags) addBuilder(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.on, "on", []string{onLab}, "who builds: lab, docker (a real Docker Engine on this machine; needs root) or swarm (between the nodes of a Docker Swarm)")
	f.addDocker(fl)
	f.swarm.add(fl)
}

func (f *builderFlags) addWire(fl *pflag.FlagSet) {
	fl.StringVar(&f.wire, "wire", "", "the link between the two machines: rate=10gbit,mtu=1500,delay=50us (default as fast as can be)")
}

func (f *builderFlags) addDocker(fl *pflag.FlagSet) {
	fl.StringVar(&f.parent, "parent", "", "docker: the network card for macvlan and ipvlan networks")
}

func (f *builderFlags) addProxy(fl *pflag.FlagSet) {
	fl.StringVar(&f.proxy, "proxy", "", `docker-proxy to use: a file, or "own" (default the installed one, else own)`)
}

// one is the backend of a command that takes one.
func (f *builderFlags) one() (string, error) {
	on, err := parseAll(f.on, parseBackend)
	if err == nil && len(on) != 1 {
		err = usage(fmt.Errorf("--on %s: one at a time", strings.Join(on, ",")), "--on "+on[0])
	}
	if err != nil {
		return "", err
	}
	return on[0], nil
}

// with runs f with the backends called on, and closes them.
func (f *builderFlags) with(ctx context.Context, on []string, wire sample.Wire, use func([]path.Builder) error) error {
	if err := f.fit(on); err != nil {
		return err
	}
	var builders []path.Builder
	run := func() error { return use(builders) }
	closing := func(b interface {
		path.Builder
		Close() error
	}) {
		builders = append(builders, b)
		inner := run
		run = func() (err error) {
			defer func() { err = errors.Join(err, b.Close()) }()
			return inner()
		}
	}
	if slices.Contains(on, swarm.Name) {
		s := f.swarm.backend()
		s.Most = 2 // a server's and a client's
		closing(s)
	}
	if slices.Contains(on, docker.Name) {
		closing(&docker.Docker{Parent: f.parent, KeepImage: f.keepImage})
	}
	if !slices.Contains(on, onLab) {
		return run()
	}
	l := &lab.Lab{ProxyPath: f.proxy, Congestion: f.congestion, Wire: wire}
	builders = append(builders, l)
	return inLab(ctx, l, run)
}

// fit refuses flags of a backend that is not used, or that others make nothing of.
func (f *builderFlags) fit(on []string) error {
	for flag, given := range map[string]bool{"congestion": f.congestion != "", "proxy": f.proxy != "", "wire": f.wire != ""} {
		if real := slices.DeleteFunc(slices.Clone(on), func(s string) bool { return s == onLab }); given && len(real) > 0 {
			return usage(fmt.Errorf("--%s is the lab's: %s shows what is there as it is", flag, real[0]), "--on lab, or leave --"+flag+" out")
		}
	}
	for flag, given := range map[string]bool{"parent": f.parent != "", "keep-image": f.keepImage} {
		if given && !slices.Contains(on, docker.Name) {
			return usage(fmt.Errorf("--%s is for docker only", flag), "--on docker, or leave --"+flag+" out")
		}
	}
	return f.swarm.fit(on)
}
