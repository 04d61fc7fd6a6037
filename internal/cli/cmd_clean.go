package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sockmem"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// cleanFast turns off shortcuts of toll fast whose lease has expired, and restores links.
func cleanFast() (ended bool, kept []string, err error) {
	if os.Geteuid() != 0 || !fast.Abandoned() {
		return false, nil, nil
	}
	kept, err = fast.TurnOff()
	return true, kept, err
}

func newClean(e env) *cobra.Command {
	var (
		d dockerapi.Clean
		k cluster.Access
		p cleanPeers
	)
	for _, b := range backends {
		if b.leftovers != nil {
			d.Parts = append(d.Parts, b.leftovers())
		}
	}
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed run left behind",
		Long: `clean removes what killed runs left behind: processes; of runs with --on docker their
containers, networks and images, devices, Open vSwitch bridges and rule in DOCKER-USER;
of runs with --on swarm their services, secrets and networks, if this node is a manager;
of runs with --on kubernetes their pods and services. It restores the limits of socket
buffers that --tune rmem_max or wmem_max set, and what --tune bridge-nf=off changed.
The kernel removes network namespaces with their processes.

It asks the Docker daemon that docker uses now, and the clusters that killed runs noted
in their journals, and removes only what carries toll's label and belongs to a toll that
has ended.

With --peer it only removes the copies of toll that are kept on those machines.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(p.names) > 0 {
				return p.clean(c.Context(), e)
			}
			return clean(c.Context(), e, &d, &k)
		},
	}
	fl := c.Flags()
	add(fl, flagDef{name: forceFlag, group: where, value: toggle(&d.Others),
		help: "also remove what toll on other machines made in this swarm or cluster, and what belongs to processes that cannot be seen, even if they still run"})
	addAccess(fl, &k, nil, "also clean the cluster that --on kubernetes uses",
		"also clean the cluster of this context", "look in this namespace (default the context's)")
	add(fl, flagDef{name: peerFlag, group: where, value: list(&p.names), word: "HOST",
		help: "[user@]HOST[:PORT],…: only remove the copies of toll that are kept on these machines",
		not:  forceFlag + " kubeconfig context namespace"})
	return c
}

type cleanPeers struct{ names []string }

// clean removes the copies of toll on other machines. It goes on after an error.
func (p cleanPeers) clean(ctx context.Context, e env) (err error) {
	hosts := make([]peer.Host, len(p.names))
	for i, name := range p.names {
		if hosts[i], err = peer.ParseHost(name); err != nil {
			return usage(fmt.Errorf("--peer: %w", err), "--peer [user@]HOST[:PORT], as for ssh")
		}
	}
	for _, h := range hosts {
		dir, failed := (&peer.Peer{Host: h}).Forget(ctx)
		switch {
		case failed != nil:
			err = errors.Join(err, failed)
		case dir == "":
			say(e.stdout, fmt.Sprintf("Nothing to clean: there is no copy of toll on %s.", h))
		default:
			say(e.stdout, fmt.Sprintf("removed %s on %s", dir, h))
		}
	}
	return err
}

func clean(ctx context.Context, e env, d *dockerapi.Clean, k *cluster.Access) error {
	ofClusters, leftThere, kubernetesErr := cleanClusters(ctx, *k, d.Others)
	killed, err := lab.Clean()
	for _, p := range killed {
		say(e.stdout, fmt.Sprintf("ended process %d: %s", p.PID, printable.Line(p.Command)))
	}
	removed := func(all []string) {
		for _, what := range all {
			say(e.stdout, "removed "+printable.Line(what))
		}
	}
	spared := func(what, why string) {
		say(e.stdout, fmt.Sprintf("left alone: %s, %s; toll clean --force removes it",
			printable.Line(what), why))
	}
	ofDocker, dockerErr := d.Run(ctx)
	removed(ofDocker)
	for _, l := range d.Left {
		spared(l.What, l.Why)
	}
	removed(ofClusters)
	for _, l := range leftThere {
		spared(l.What, l.Why)
	}
	limits, limitsErr := sockmem.Default.Clean()
	unclear, hint := sockmem.Unclear(limitsErr)
	if unclear != "" {
		say(e.stdout, "left alone: the limits of socket buffers, set by a toll whose process "+
			"cannot be seen; "+hint)
	}
	if sockmem.Busy(limitsErr) { // the toll that set them will restore them
		limitsErr = nil
	}
	for _, l := range limits {
		say(e.stdout, fmt.Sprintf("restored %s", l))
	}
	ended, kept, fastErr := cleanFast()
	if ended {
		say(e.stdout,
			"removed the shortcuts of toll fast and restored its links: the lease had expired")
		sayKept(e, kept)
	}
	if kubernetesErr != nil && dockerErr != nil && kubernetesErr.Error() == dockerErr.Error() {
		kubernetesErr = nil // both read the state directory
	}
	if err := errors.Join(err, dockerErr, kubernetesErr, limitsErr, fastErr); err != nil {
		return err
	}
	done := len(limits) + len(killed) + len(ofDocker) + len(ofClusters)
	if !ended && unclear == "" && done+len(d.Left)+len(leftThere) == 0 {
		say(e.stdout, "Nothing to clean: no process of an earlier toll is left.")
		say(e.stdout, "The kernel removes the lab's namespaces with their processes.")
	}
	return nil
}
