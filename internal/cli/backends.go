package cli

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/paths/swarm"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type backend struct {
	name  string
	words string // description for help; "" if the name is enough
	// model means that the machines are toll's own and can be set up freely. The backend's flags
	// are refused in runs with other backends.
	model bool
	// modes returns the names that "all" stands for; nil: all modes but Kubernetes's own.
	modes func() []string
	// visits is the reason why loads are measured in visits unless slices are requested; "": slices
	// are the default.
	visits   string
	settings func(*builderFlags) settings
	// meshModes returns the modes that toll mesh can measure; nil: none. If there are any, the
	// settings make a cluster.
	meshModes func() []string
	inner     func(args []string) (ours bool, err error)
	leftovers func() dockerapi.Part
}

// backends lists all backends. Those whose processes contain others come first.
var backends = []backend{
	{
		name:     sample.Lab,
		model:    true,
		settings: func(f *builderFlags) settings { return &labFlags{wire: &f.wire, rules: &f.rules} },
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
		name:     sample.Podman,
		words:    "Podman on this machine, by its service",
		settings: func(f *builderFlags) settings { return &podmanFlags{all: f} },
	},
	{
		name:      swarm.Name,
		words:     "between the nodes of a Docker Swarm",
		settings:  func(f *builderFlags) settings { return &swarmFlags{all: f} },
		meshModes: swarm.Modes,
		leftovers: swarm.Leftovers,
	},
	{
		name:      sample.Kubernetes,
		words:     "on the pods of a Kubernetes cluster",
		modes:     podModes,
		visits:    "the API server is between toll and the nodes' clocks, which may be known too little for slices (--slice tries)",
		settings:  func(f *builderFlags) settings { return &kubernetesFlags{all: f} },
		meshModes: podModes,
		inner: func(args []string) (bool, error) {
			if !kubernetes.Linked() {
				return false, nil
			}
			return kubernetes.Inner(args)
		},
	},
	{
		name:  peer.Name,
		words: "to other machines by ssh",
		settings: func(f *builderFlags) settings {
			if f.mesh {
				return &meshPeers{all: f}
			}
			return &peerFlags{all: f}
		},
		meshModes: peer.Modes,
	},
}

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

// visitsOn returns the reason why loads are measured in visits on the backends, or "" if slices are
// the default on all of them.
func visitsOn(on []string) string {
	for _, b := range backends {
		if b.visits != "" && slices.Contains(on, b.name) {
			return "--on " + b.name + ": " + b.visits
		}
	}
	return ""
}

// modesOn returns the modes of the backends, in the catalogue's order.
func modesOn(on []string) []mode.Name {
	var some []mode.Name
	for _, b := range backends {
		if slices.Contains(on, b.name) {
			some = append(some, b.modesOf()...)
		}
	}
	return slices.DeleteFunc(mode.Names(), func(n mode.Name) bool {
		return !slices.Contains(some, n)
	})
}

var parseBackend = closed("backend", backendNames()...)

func backendNames() []string { return namesOf(backends) }

func namesOf(all []backend) (out []string) {
	for _, b := range all {
		out = append(out, b.name)
	}
	return out
}

func meshBackends() (out []string) {
	for _, b := range backends {
		if b.meshModes != nil {
			out = append(out, b.name)
		}
	}
	return out
}

func listBackends(all []backend, either bool) string {
	var words []string
	for _, b := range all {
		text := b.name
		if b.words != "" {
			text += " (" + b.words + ")"
		}
		words = append(words, text)
	}
	if either {
		return printable.Either(words)
	}
	return strings.Join(words, ", ")
}
