package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/kubernetes"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/paths/swarm"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// meshFlags are the flags that only a mesh has.
type meshFlags struct {
	mode   string   // one, or two with a comma
	labels []string // keys
	sweeps int
	atOnce int
	swarm  swarmFlags // a Kubernetes cluster uses its nodes and image, too
	kube   kubernetesFlags
	peers  meshPeers

	ofSwarm, ofKube, ofPeers *pflag.FlagSet // the flags of each
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
Kubernetes cluster, or every two machines that ssh reaches. In each round every node is in one pair, so N
nodes take N-1 rounds. It prints a table of nodes × nodes, and names the nodes that
are slow to all others, and the links that are slow though their nodes are not.
On a swarm it runs on a manager; every node must have toll's image (see toll image).
On Kubernetes each pair is measured on the pods' network and on the nodes' own, one right
after the other (--mode pod,host): it says what the CNI costs on each link, and tells a slow
link from a slow CNI. On a swarm --mode overlay,host does the same.
A MACHINE is one that ssh reaches, as ssh takes it ([user@]HOST[:PORT]); localhost is
this one. toll starts itself there by ssh, and the machines dial each other.`,
		Example: `  toll mesh --on swarm
  toll mesh --on swarm --nodes a,b,c --mode overlay --load rr
  toll mesh --on swarm --budget 5m --save mesh.jsonl
  toll mesh --on kubernetes
  toll mesh --on kubernetes --mode pod --label example.org/rack
  toll mesh a b rack2=me@c:2222
  toll mesh localhost a b --peers-network 10.0.0.0/24`,
		RunE: func(c *cobra.Command, args []string) error {
			m.peers.hosts = append(m.peers.hosts, args...)
			if !c.Flags().Changed("seed") {
				f.seed = uint64(rand.Uint32())
			}
			return f.runMesh(c.Context(), e, &m, c.Flags())
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	on := meshBackends()
	last := len(on) - 1
	fl.StringSliceVar(&f.on, "on", []string{swarm.Name}, "where the nodes are: "+strings.Join(on[:last], ", ")+" or "+on[last])
	offer(fl, "on", on)
	of := func(name string) *pflag.FlagSet {
		out := pflag.NewFlagSet(name, pflag.ContinueOnError)
		out.SortFlags = false
		return out
	}
	m.ofSwarm, m.ofKube, m.ofPeers = of(swarm.Name), of(kubernetes.Name), of(peer.Name)
	m.ofSwarm.StringSliceVar(&m.swarm.nodes, "nodes", nil, "swarm, kubernetes: the nodes, by name or ID (default all that take tasks)")
	m.swarm.addHow(m.ofSwarm)
	m.kube.addHow(m.ofKube)
	m.ofKube.StringSliceVar(&m.labels, "label", nil, "kubernetes: label of the nodes, by its key, by which links are grouped, too; may be repeated (default region, zone and rack)")
	m.peers.add(m.ofPeers)
	for _, own := range []*pflag.FlagSet{m.ofSwarm, m.ofKube, m.ofPeers} {
		fl.AddFlagSet(own)
	}
	fl.StringVar(&m.mode, "mode", string(mode.Host), "the network mode between the nodes, or a mode and host, to compare it with host: "+strings.Join(swarm.Modes(), ", ")+
		" (default host); of Kubernetes "+strings.Join(kubernetes.Modes(), ", ")+" (default pod,host); of peers always "+strings.Join(peer.Modes(), ", "))
	fl.Var(wholeFlag(&m.atOnce, 0, 0, unlimited[int]()), "at-once", "pairs that are measured at a time, at most (default as many as a round has)")
	f.addMeshLoads(fl)
	f.addWindow(fl)
	f.addSweeps(fl, &m)
	return c
}

func (f *runFlags) addMeshLoads(fl *pflag.FlagSet) {
	takes := []string{workload.RR, workload.Bulk}
	fl.StringSliceVar(&f.loads.kinds, "load", takes, "the traffic: rr (request/response), bulk (TCP stream, in both directions)")
	offer(fl, "load", loadWords(takes))
	f.loads.add(fl, []string{workload.Bulk, workload.RR}, func(flag string) bool {
		return flag == "streams" || flag == "request" || flag == "reply"
	})
}

// addSweeps adds the flags for when to stop and where the results go.
func (f *runFlags) addSweeps(fl *pflag.FlagSet, m *meshFlags) {
	f.addRounds(fl)
	fl.Var(wholeFlag(&m.sweeps, 0, 0, unlimited[int]()), "sweeps", "visit every pair this many times, regardless of budget and precision")
	_ = fl.MarkHidden("rounds")
}

// runMesh finds the nodes, plans and measures.
func (f *runFlags) runMesh(ctx context.Context, e env, m *meshFlags, given *pflag.FlagSet) (err error) {
	if f.quiet {
		defer sayNothing()()
	}
	req, err := f.meshRequest(m, given)
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
	// Report errors that no set of nodes could mend before asking any node.
	req.Nodes = []sample.Node{{Name: "one"}, {Name: "another"}}
	if _, err := plan.Mesh(req); err != nil {
		return badMesh(err)
	}
	defer newProgress(e.stderr, f.quiet).sayStopping(ctx)()
	s := m.backend(req.On)
	defer func() { err = errors.Join(err, s.Close()) }()
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
	if req.On == kubernetes.Name {
		req.Labels = m.meshLabels(nodes)
	}
	p, err := plan.Mesh(req)
	if err != nil {
		return badMesh(err)
	}
	for _, n := range nodes {
		if err := without[n.Name]; err != nil {
			warn(e, printable.Line(path.OneLine(err)))
		}
	}
	if f.dryRun {
		return f.out.print(e, planDocument(p, nil))
	}
	return f.measure(ctx, e, engine.Config{Plan: p, Builders: []path.Builder{s}})
}

// inMesh returns the names of the nodes that have an agent, or an error if there are fewer than
// two.
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

// meshModes returns the request's modes. The second one, if any, is what the first is compared
// with.
func meshModes(r plan.MeshRequest) []mode.Name {
	if r.Beside == "" {
		return []mode.Name{r.Mode}
	}
	return []mode.Name{r.Mode, r.Beside}
}

// parseMeshModes reads --mode: one mode, or two of which one is host.
func parseMeshModes(text string) (name, beside mode.Name, err error) {
	const example = "--mode pod, --mode host or --mode pod,host"
	words := strings.Split(text, ",")
	if name, err = parseOne(words[0], mode.ParseName); err != nil || len(words) == 1 {
		return name, "", err
	}
	if beside, err = parseOne(words[1], mode.ParseName); err != nil {
		return "", "", err
	}
	if name == mode.Host {
		name, beside = beside, name
	}
	if len(words) > 2 || beside != mode.Host || name == mode.Host { //nolint:mnd // of which one is held against the other
		return "", "", usage(fmt.Errorf("--mode %s: a mesh has one mode, or a mode and host, to compare it with host", text), example)
	}
	return name, beside, nil
}

// meshLabels returns the label keys that tell the nodes apart: the larger place first, then the
// keys that the user named.
func (m *meshFlags) meshLabels(nodes []sample.Node) (keys []string) {
	for _, key := range append(kubernetes.PlaceLabels(), m.labels...) {
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

// badMesh refuses a request that cannot be planned.
func badMesh(err error) error {
	return usage(err, cmp.Or((&failure{err: err}).Hint(), "see toll mesh --help"))
}

// checkMesh checks the path between two of the nodes, and then between others if it is unsupported
// there, because a lack of one node does not rule out the mesh.
func checkMesh(ctx context.Context, s interface {
	Check(ctx context.Context, spec path.Spec) error
}, between path.Spec, nodes []string) error {
	const tries = 3 // with three nodes, each pair
	var first error
	for i := range min(tries, len(nodes)) {
		between.Server, between.Client = nodes[i], nodes[(i+1)%len(nodes)]
		err := s.Check(ctx, between)
		if err == nil || !errors.Is(err, path.ErrUnsupported) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// meshRequest reads the flags. The nodes are added later.
func (f *runFlags) meshRequest(m *meshFlags, given *pflag.FlagSet) (r plan.MeshRequest, err error) {
	if err := f.out.check(place{saveFlag, f.save}); err != nil {
		return r, err
	}
	if r.On, err = m.on(f.on, given); err != nil {
		return r, err
	}
	if given.Changed("rounds") {
		return r, usage(errors.New("a mesh has no --rounds"), "--sweeps: each visits every pair once")
	}
	if r.Mode, r.Beside, err = parseMeshModes(m.mode); err != nil {
		return r, err
	}
	wire, err := parseWire("")
	if err != nil {
		return r, err
	}
	if r.Loads, err = f.loadsOver(wire); err != nil {
		return r, err
	}
	r.Sweeps, r.AtOnce, r.Budget, r.Precision, r.Pin, r.Seed = m.sweeps, m.atOnce, f.budget.Seconds(), f.precision, "none", f.seed
	return r, nil
}

// on returns the backend that has the nodes, chosen by the given flags. It also reads its flags.
func (m *meshFlags) on(on []string, all *pflag.FlagSet) (string, error) {
	if !all.Changed("on") && len(m.peers.hosts) > 0 {
		on = []string{peer.Name}
	}
	if len(m.peers.hosts) > 0 && (slices.Equal(on, []string{swarm.Name}) || slices.Equal(on, []string{kubernetes.Name})) {
		return "", usage(fmt.Errorf("%s is a machine for ssh: the nodes of %s are known", m.peers.hosts[0], on[0]), "leave --on out, or --nodes for some nodes")
	}
	refuse := func(other *pflag.FlagSet, but ...string) error {
		flag := given(other, func(name string) bool { return !slices.Contains(but, name) })
		if flag == "" {
			return nil
		}
		return usage(fmt.Errorf("--%s is for %s only", flag, other.Name()), "--on "+other.Name()+", or leave --"+flag+" out")
	}
	switch {
	case slices.Equal(on, []string{swarm.Name}):
		return swarm.Name, cmp.Or(refuse(m.ofPeers), refuse(m.ofKube), m.swarm.read())
	case slices.Equal(on, []string{kubernetes.Name}):
		if !all.Changed("mode") {
			m.mode = string(mode.Pod)
			if !m.kube.unprivileged {
				m.mode += "," + string(mode.Host)
			}
		}
		if slices.Contains(m.labels, "") {
			return "", usage(errors.New("--label: one has no name"), "--label topology.kubernetes.io/zone")
		}
		return kubernetes.Name, cmp.Or(refuse(m.ofPeers), refuse(m.ofSwarm, "nodes", "image"), m.swarm.read())
	case !slices.Equal(on, []string{peer.Name}):
		return "", usage(fmt.Errorf("--on %s: a mesh is measured on a cluster", strings.Join(on, ",")), "--on swarm, --on kubernetes, or toll mesh a b c")
	}
	if !all.Changed("mode") {
		m.mode = string(mode.Native)
	}
	if !slices.Contains(peer.Modes(), m.mode) {
		return "", usage(fmt.Errorf("--mode %s: between machines that ssh reaches a mesh is measured without containers", m.mode), "leave --mode out, or --on swarm")
	}
	return peer.Name, cmp.Or(refuse(m.ofSwarm), refuse(m.ofKube), m.peers.check())
}

// backend returns the backend of the nodes.
func (m *meshFlags) backend(on string) cluster {
	switch on {
	case peer.Name:
		return m.peers.backend()
	case kubernetes.Name:
		k := m.kube.backend(&m.swarm)
		k.Labels = m.labels
		return k
	}
	return m.swarm.backend()
}
