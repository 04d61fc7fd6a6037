package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/build/docker"
	"github.com/bridgetoll/bridgetoll/internal/build/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/build/kubernetes"
	"github.com/bridgetoll/bridgetoll/internal/build/lab"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/peer"
	"github.com/bridgetoll/bridgetoll/internal/build/swarm"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// backend builds paths for those who name it with --on.
type backend struct {
	name  string
	words string // what it is, for help; "" if the name says it
	// model says that its machines are toll's own: they can be set up as one likes,
	// and its flags are not for runs that also have others.
	model bool
	// distant says that client and server are on different machines.
	distant bool
	// meshes says that toll mesh can measure between its machines.
	meshes bool
	// modes are those that "all" is there; nil: all but Kubernetes's own.
	modes func() []string
	// usual are the modes that are compared there if none is named; nil: those of all backends.
	usual func(*builderFlags) []string
	// visits says why loads are measured in visits there unless slices are asked for; "": they need not be.
	visits string
	// settings are new ones, with nothing set, for a command with such flags.
	settings func(*builderFlags) settings
	// inner runs what the backend starts of this program, if args say so; nil: nothing.
	inner func(args []string) (ours bool, err error)
	// leftovers are what toll clean looks for with a Docker daemon; nil: nothing.
	leftovers func() dockerapi.Part
}

// settings are what the flags of a backend say, and make it.
type settings interface {
	// add adds the flags that a command of the kind has.
	add(fl *pflag.FlagSet, k commandKind)
	// check reads them. It is called if the backend is used.
	check() error
	// with calls use with the backend, and closes it.
	with(ctx context.Context, wire sample.Wire, use func(path.Builder) error) error
}

// commandKind is what a command does with backends; each has the flags of those before.
type commandKind int

const (
	checksPaths  commandKind = iota // toll modes
	buildsPath                      // toll path
	comparesRuns                    // those that measure
)

// backends are all, those first around whose process the others work.
var backends = []backend{
	{
		name:     sample.Lab,
		model:    true,
		settings: func(f *builderFlags) settings { return &labFlags{wire: &f.wire} },
		inner:    lab.Inner,
	},
	{
		name:      docker.Name,
		words:     "a real Docker Engine on this machine; needs root",
		settings:  func(*builderFlags) settings { return &dockerFlags{} },
		inner:     docker.Inner,
		leftovers: docker.Leftovers,
	},
	{
		name:      swarm.Name,
		words:     "between the nodes of a Docker Swarm",
		distant:   true,
		meshes:    true,
		settings:  func(*builderFlags) settings { return &swarmFlags{} },
		leftovers: swarm.Leftovers,
	},
	{
		name:     kubernetes.Name,
		words:    "on the pods of a Kubernetes cluster",
		distant:  true,
		meshes:   true,
		modes:    kubernetes.Modes,
		usual:    func(f *builderFlags) []string { return kubernetes.Usual(f.unprivileged(), f.outside()) },
		visits:   "the API server is between toll and the nodes' clocks, which may be known too little for slices (--slice tries)",
		settings: func(f *builderFlags) settings { return &kubernetesFlags{all: f} },
		inner:    kubernetes.Inner,
	},
	{
		name:     peer.Name,
		words:    "to other machines by ssh",
		distant:  true,
		meshes:   true,
		usual:    func(*builderFlags) []string { return peer.Modes() },
		settings: func(*builderFlags) settings { return &peerFlags{} },
	},
}

// modesOf are the modes that "all" is on the backend.
func (b backend) modesOf() []mode.Name {
	var out []mode.Name
	if b.modes != nil {
		for _, name := range b.modes() {
			out = append(out, mode.Name(name))
		}
		return out
	}
	for _, m := range mode.OfDocker() {
		out = append(out, m.Name)
	}
	return out
}

// usualModes are those that are compared if none is named; nil: what all backends have.
func (f *runFlags) usualModes() []string {
	for _, b := range backends {
		if b.usual != nil && slices.Equal(f.on, []string{b.name}) {
			return b.usual(&f.builderFlags)
		}
	}
	if f.beside() {
		return besideModes(f.unprivileged())
	}
	return nil
}

// visitsOn says why loads are measured in visits on one of the backends called on; "": they need not be.
func visitsOn(on []string) string {
	for _, b := range backends {
		if b.visits != "" && slices.Contains(on, b.name) {
			return "--on " + b.name + ": " + b.visits
		}
	}
	return ""
}

// modesOn are the modes that "all" is on those backends, in the catalogue's order.
func modesOn(on []string) []mode.Name {
	var some []mode.Name
	for _, b := range backends {
		if slices.Contains(on, b.name) {
			some = append(some, b.modesOf()...)
		}
	}
	return slices.DeleteFunc(mode.Names(), func(n mode.Name) bool { return !slices.Contains(some, n) })
}

var parseBackend = closed("backend", backendNames()...)

func backendNames() []string { return namesOf(backends) }

func namesOf(all []backend) (out []string) {
	for _, b := range all {
		out = append(out, b.name)
	}
	return out
}

// meshBackends are those whose machines a mesh can be measured between.
func meshBackends() (out []string) {
	for _, b := range backends {
		if b.meshes {
			out = append(out, b.name)
		}
	}
	return out
}

// distantOf is the first of the backends called on whose ends are on machines of their
// own; "" if there is none.
func distantOf(on []string) string {
	for _, b := range backends {
		if b.distant && slices.Contains(on, b.name) {
			return b.name
		}
	}
	return ""
}

// listBackends lists backends for help.
func listBackends(all []backend, last string) string {
	var words []string
	for _, b := range all {
		text := b.name
		if b.words != "" {
			text += " (" + b.words + ")"
		}
		words = append(words, text)
	}
	if last == "" {
		return strings.Join(words, ", ")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + last + words[n]
}

// labFlags are those of the lab.
type labFlags struct {
	wire              *string // which the plan has, too
	proxy, congestion string
}

func (f *labFlags) add(fl *pflag.FlagSet, k commandKind) {
	if k >= buildsPath {
		fl.StringVar(f.wire, "wire", "", "the link between the two machines: rate=10gbit,mtu=1500,delay=50us (default as fast as possible)")
		fl.StringVar(&f.proxy, "proxy", "", `docker-proxy to use: a file, "own", or "off" for publish without it (default the installed one, else own)`)
	}
	if k >= comparesRuns {
		fl.StringVar(&f.congestion, "congestion", "", "TCP congestion control, such as cubic or reno (default the machine's, as in containers)")
	}
}

func (f *labFlags) check() error { return nil }

func (f *labFlags) with(ctx context.Context, wire sample.Wire, use func(path.Builder) error) error {
	l := &lab.Lab{ProxyPath: f.proxy, Congestion: f.congestion, Wire: wire}
	return inLab(ctx, l, func() error { return use(l) })
}

// dockerFlags are those of a Docker Engine.
type dockerFlags struct {
	parent    string
	keepImage bool
}

func (f *dockerFlags) add(fl *pflag.FlagSet, k commandKind) {
	fl.StringVar(&f.parent, "parent", "", "docker: the network card for macvlan and ipvlan networks")
	if k >= comparesRuns {
		fl.BoolVar(&f.keepImage, "keep-image", false, "docker: keep toll's image for the next run")
	}
}

func (f *dockerFlags) check() error { return nil }

func (f *dockerFlags) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) (err error) {
	d := &docker.Docker{Parent: f.parent, KeepImage: f.keepImage}
	defer func() { err = errors.Join(err, d.Close()) }()
	return use(d)
}
