package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type meshFlags struct {
	mode   string // one, or two with a comma
	atOnce int
}

func newMesh(e env) *cobra.Command {
	var (
		f runFlags
		m meshFlags
	)
	c := &cobra.Command{
		Use:   "mesh [[NAME=]MACHINE…]",
		Short: "Find the slow nodes and links of a cluster, or of machines by ssh",
		Long: `mesh measures latency and throughput between every two nodes of a Docker Swarm or a
Kubernetes cluster, or every two machines that ssh reaches. Each round measures every node in one pair, so a
sweep of N nodes takes N-1 rounds. It prints a table of nodes × nodes, and names nodes
that are slow to all others, and links that are slow although their nodes are not.

On a swarm run it on a manager; every node must have toll's image (see toll image).
On Kubernetes it measures each pair on the pods' network and on the nodes' own, one right
after the other (--mode pod,host): this shows what the CNI costs on each link, and tells
a slow link from a slow CNI. On a swarm --mode overlay,host does the same.
A MACHINE is [user@]HOST[:PORT], as for ssh; localhost is this one. toll starts itself
there by ssh, and the machines dial each other.`,
		Example: `  toll mesh --on swarm
  toll mesh --on swarm --nodes a,b,c --mode overlay --load rr
  toll mesh --on swarm --budget 5m --save mesh.jsonl
  toll mesh --on kubernetes
  toll mesh --on kubernetes --mode pod --label example.org/rack
  toll mesh a b rack2=me@c:2222
  toll mesh localhost a b --address 10.0.0.0/24`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.runMesh(c, e, m, args)
		},
	}
	fl := c.Flags()
	on := meshBackends()
	f.addOn(fl, on[:1], on, "where the nodes are: "+printable.Either(on))
	f.mesh = true
	f.addSettings(fl, comparesRuns)
	f.addMeshModes(fl, &m)
	add(fl, flagDef{name: "at-once", group: howLong, value: wholeFlag(&m.atOnce, 0, 0, unlimited[int]()),
		help: "measure at most this many pairs at a time (default all pairs of a round)"})
	f.addMeshLoads(fl)
	f.addWindow(fl)
	f.addRounds(fl)
	fl.Lookup("rounds").Usage = "visit every pair this many times, regardless of budget and precision"
	return c
}

func (f *runFlags) addMeshModes(fl *pflag.FlagSet, m *meshFlags) {
	help, all := "the network mode between the nodes, or MODE,host to compare it with host",
		[]string{}
	for _, b := range backends {
		if b.meshModes == nil {
			continue
		}
		all = append(all, b.meshModes()...)
		help += "; of " + b.name + " " + strings.Join(b.meshModes(), ", ")
		if usual := f.usualMesh(b.name); len(b.meshModes()) > 1 {
			help += " (default " + usual + ")"
		}
	}
	slices.Sort(all)
	add(fl, flagDef{name: "mode", group: toMeasure, value: text(&m.mode, ""), word: "MODE", help: help,
		main: "mesh", offer: slices.Compact(all)})
}

func (f *runFlags) usualMesh(on string) string {
	d, _ := f.of[on].defaults(nil) // no flag of a mesh makes it fail
	return d.mesh
}

func (f *traffic) addMeshLoads(fl *pflag.FlagSet) {
	takes := []string{workload.RR, workload.Bulk}
	f.addLoad(fl, takes, takes, "rr (request/response), bulk (TCP stream, in both directions)")
	f.loads.add(fl, []string{workload.Bulk, workload.RR}, func(flag string) bool {
		return flag == "streams" || flag == "request" || flag == "reply"
	})
}

func (f *runFlags) runMesh(c *cobra.Command, e env, m meshFlags, machines []string) error {
	if f.quiet {
		defer sayNothing()()
	}
	req, err := f.meshRequest(m, c.Flags(), machines)
	if err != nil {
		return err
	}
	var between []path.Spec
	for _, name := range meshModes(req) {
		spec, err := engine.MeshSpec(name)
		if err != nil {
			return err
		}
		between = append(between, spec)
	}
	// Report errors that do not depend on the nodes before any node is contacted.
	req.Nodes = []sample.Node{{Name: "one"}, {Name: "another"}}
	if _, err := plan.Mesh(req); err != nil {
		return badMesh(err)
	}
	ctx := c.Context()
	defer newProgress(e.stderr, f.quiet).sayStopping(ctx)()
	return f.with(ctx, []string{req.On}, sample.Wire{}, func(b []path.Builder) error {
		return f.measureMesh(c, e, req, between, b[0].(meshCluster))
	})
}

func (f *runFlags) measureMesh(c *cobra.Command, e env, req plan.MeshRequest,
	between []path.Spec, s meshCluster) error {
	ctx := c.Context()
	nodes, without, err := s.Cluster(ctx)
	if err != nil {
		return err
	}
	with, err := inMesh(nodes, without)
	if err != nil {
		return err
	}
	for _, spec := range between {
		if err := checkMesh(ctx, s, spec, with); err != nil {
			return err
		}
	}
	if req.NotWitnessed, err = unseen(ctx, s, between[0], with); err != nil {
		return err
	}
	req.Nodes = nodes
	labels, _ := c.Flags().GetStringSlice(labelFlag) // fails for flags that do not exist
	req.Labels = meshLabels(nodes, labels)
	p, err := plan.Mesh(req)
	if err != nil {
		return badMesh(err)
	}
	for _, n := range nodes {
		if err := without[n.Name]; err != nil {
			warn(e, printable.Line(path.OneLine(err)))
		}
	}
	if err := f.fitBudget(e, c.Flags(), &p); err != nil {
		return err
	}
	if f.dryRun {
		return f.out.print(e, view.Plan(p, nil))
	}
	return f.measure(c, e, engine.Config{Plan: p, Builders: []path.Builder{s}})
}

// inMesh returns an error if fewer than two nodes have an agent.
func inMesh(nodes []sample.Node, without map[string]error) (with []string, err error) {
	if len(nodes)-len(without) < 2 {
		for _, err := range without {
			return nil, err
		}
	}
	for _, n := range nodes {
		if without[n.Name] == nil {
			with = append(with, n.Name)
		}
	}
	return with, nil
}

// meshModes returns the modes of a mesh. The first is compared with the second, if there is one.
func meshModes(r plan.MeshRequest) []mode.Name {
	if r.Beside == "" {
		return []mode.Name{r.Mode}
	}
	return []mode.Name{r.Mode, r.Beside}
}

// parseMeshModes accepts any mode. An unknown word's hint lists the known modes.
func parseMeshModes(text string, known []string) (name, beside mode.Name, err error) {
	const example = "--mode pod, --mode host or --mode pod,host"
	parse := func(word string) (mode.Name, error) {
		if m, ok := mode.Find(mode.Name(word)); ok {
			return m.Name, nil
		}
		meant, err := closed("mode", known...)(word)
		return mode.Name(meant), err
	}
	words := strings.Split(text, ",")
	if name, err = parseOne(words[0], parse); err != nil || len(words) == 1 {
		return name, "", err
	}
	if beside, err = parseOne(words[1], parse); err != nil {
		return "", "", err
	}
	if name == mode.Host {
		name, beside = beside, name
	}
	if len(words) > 2 || beside != mode.Host || name == mode.Host { //nolint:mnd // two modes, one of them host
		return "", "",
			usage(fmt.Errorf("--mode %s: toll mesh takes one mode, or one mode and host",
				text), example)
	}
	return name, beside, nil
}

// meshLabels returns the keys of the nodes' labels, those of larger places first and the user's
// last.
func meshLabels(nodes []sample.Node, named []string) (keys []string) {
	for _, key := range append(cluster.PlaceLabels(), named...) {
		has := slices.ContainsFunc(nodes, func(n sample.Node) bool { return n.Labels[key] != "" })
		if has && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// unseen returns which hops could not be read, and why, on the first path that can be built between
// two neighbouring nodes.
func unseen(ctx context.Context, s path.Builder, spec path.Spec, nodes []string) (string, error) {
	for i := range nodes[1:] {
		spec.Server, spec.Client = nodes[i], nodes[i+1]
		if p, err := s.Build(ctx, spec); err == nil {
			return p.Facts[sample.FactNotWitnessed], p.Close()
		}
	}
	return "", ctx.Err()
}

func badMesh(err error) error {
	return usage(err, cmp.Or((&failure{err: err}).Hint(), "see toll mesh --help"))
}

// checkMesh returns an error if the mesh cannot be measured. It tries other nodes if a path is
// unsupported, because the lack may be one node's.
func checkMesh(ctx context.Context, s interface {
	Check(ctx context.Context, spec path.Spec) error
}, between path.Spec, nodes []string) error {
	const tries = 3 // with three nodes, each pair
	var first error
	for i := range min(tries, len(nodes)) {
		between.Server, between.Client = nodes[i], nodes[(i+1)%len(nodes)]
		err := s.Check(ctx, between)
		if err == nil || !errors.Is(err, machine.ErrUnsupported) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

func (f *runFlags) meshRequest(m meshFlags, given *pflag.FlagSet,
	machines []string) (r plan.MeshRequest, err error) {
	if err := f.out.check(place{saveFlag, f.save}); err != nil {
		return r, err
	}
	if r.On, err = f.meshOn(given, machines); err != nil {
		return r, err
	}
	if !given.Changed("mode") {
		m.mode = f.usualMesh(r.On)
	}
	i := slices.IndexFunc(backends, func(b backend) bool { return b.name == r.On })
	known := backends[i].meshModes()
	if r.Mode, r.Beside, err = parseMeshModes(m.mode, known); err != nil {
		return r, err
	}
	if !slices.Contains(known, string(r.Mode)) {
		return r, usage(fmt.Errorf("--mode %s: with --on %s toll mesh measures only %s", r.Mode,
			r.On, strings.Join(known, ", ")), "leave --mode out")
	}
	wire, err := parseWire("")
	if err != nil {
		return r, err
	}
	if r.Loads, _, err = f.loadsOver(given, wire); err != nil {
		return r, err
	}
	t := f.timing.into(plan.Request{}, given)
	r.Sweeps, r.AtOnce, r.Pin = f.rounds, m.atOnce, sample.PinNone
	r.Budget, r.Precision, r.Seed = t.Budget, t.Precision, t.Seed
	return r, nil
}

func (f *runFlags) meshOn(given *pflag.FlagSet, machines []string) (string, error) {
	peers := f.of[peer.Name].(*meshPeers) //nolint:forcetypeassert // it is that backend's
	peers.hosts = machines
	all := f.on
	if !given.Changed("on") && len(machines) > 0 {
		all = []string{peer.Name}
	}
	if len(all) != 1 || !slices.Contains(meshBackends(), all[0]) {
		return "", usage(fmt.Errorf("--on %s: toll mesh measures clusters and machines by ssh",
			strings.Join(all, ",")), "--on swarm, --on kubernetes, or toll mesh a b c")
	}
	on := all[0]
	if len(machines) > 0 && on != peer.Name {
		return "", usage(fmt.Errorf(
			"%s: --on %s takes no machines, because toll lists its nodes itself", machines[0], on),
			"leave --on out, or --nodes for some nodes")
	}
	return on, f.fit(all)
}
