package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

func newKubernetes(e env) *cobra.Command {
	c := &cobra.Command{
		Use:   "kubernetes",
		Short: "Print what a Kubernetes cluster must allow toll",
		Long: `kubernetes helps the administrator of a cluster to let another user measure there with
--on kubernetes.`,
		Example: `  toll kubernetes manifest | kubectl apply -f -`,
		Args:    noArguments,
		RunE: atOnce(func(*cobra.Command, []string) error {
			return usage(errors.New("toll kubernetes needs a command: manifest"),
				"toll kubernetes manifest")
		}),
	}
	c.AddCommand(newManifest(e))
	return c
}

func newManifest(e env) *cobra.Command {
	m := cluster.Manifest{Account: "toll"}
	c := &cobra.Command{
		Use:   "manifest",
		Short: "Print a namespace, an account and the least rights that toll needs",
		Long: `manifest prints YAML for kubectl apply: a namespace with the level of Pod Security
that toll's pods need, a service account, and roles that allow what a run does and
nothing else. Its first lines explain how to use that account.`,
		Example: `  toll kubernetes manifest | kubectl apply -f -
  toll kubernetes manifest --namespace net-perf --unprivileged
  toll kubernetes manifest --nodes worker-1,worker-2`,
		Args: noArguments,
		RunE: atOnce(func(*cobra.Command, []string) error {
			if err := checkNames(m.Nodes); err != nil {
				return err
			}
			if err := handOver(); err != nil {
				return err
			}
			if err := kubernetes.Check(m); err != nil {
				return usage(err, "Kubernetes names have lower case letters, digits and -")
			}
			return kubernetes.Write(m, e.stdout)
		}),
	}
	fl := c.Flags()
	add(fl,
		flagDef{name: "namespace", group: where, value: text(&m.Namespace, "toll"), word: "NAME",
			help: "the namespace to make"},
		flagDef{name: "nodes", group: where, value: list(&m.Nodes), word: "NODES",
			help: "only these nodes may be seen, so every run has to name them (default all of the cluster)"},
		flagDef{name: "unprivileged", group: where, value: toggle(&m.Unprivileged),
			help: "for runs with --unprivileged: the namespace forbids privileged pods"})
	return c
}
