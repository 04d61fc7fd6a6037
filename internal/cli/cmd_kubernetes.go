package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
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

// kubernetes is zero in a toll without Kubernetes' client.
var kubernetes cluster.Kubernetes

// handedEnv is set in a toll that another toll has handed its command line to.
const handedEnv = "BRIDGETOLL_HANDED"

// podModes returns the names of the modes that a cluster can have.
func podModes() (names []string) {
	for _, m := range mode.OfKubernetes() {
		names = append(names, string(m.Name))
	}
	return names
}

// handOver runs this command line in kubectl-toll instead, unless this toll has Kubernetes' client.
// It returns only if this one goes on or fails.
func handOver() error {
	if kubernetes.Linked() {
		return nil
	}
	program, err := findKubectlToll()
	if err == nil && os.Getenv(handedEnv) == "" {
		err = syscall.Exec(program, append([]string{pluginCommand}, os.Args[1:]...),
			append(os.Environ(), handedEnv+"=1"))
		return fmt.Errorf("run %s: %w", program, err)
	}
	return &machine.UnsupportedError{
		Missing: "this toll has no client for Kubernetes; that is in " + kubectlName +
			", which is neither beside it nor in the PATH",
		Remedy: "go install github.com/bridgetoll/bridgetoll/cmd/" + kubectlName +
			"@latest, or take it from toll's release archive or package"}
}

// findKubectlToll returns the file beside this program, or the first in the PATH, that is not this
// program.
func findKubectlToll() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	own, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	for _, dir := range append([]string{filepath.Dir(self)},
		filepath.SplitList(os.Getenv("PATH"))...) {
		file, err := exec.LookPath(filepath.Join(dir, kubectlName))
		if err != nil || !filepath.IsAbs(file) {
			continue
		}
		if at, err := os.Stat(file); err == nil && !os.SameFile(own, at) {
			return file, nil
		}
	}
	return "", fs.ErrNotExist
}

// cleanClusters removes what ended runs left in clusters, or hands the command line over if there
// may be something and this toll has no client.
func cleanClusters(ctx context.Context, named cluster.Access, others bool) ([]string,
	[]cluster.Left, error) {
	if kubernetes.Linked() {
		return kubernetes.Clean(ctx, named, others)
	}
	var left []string
	dir, err := journal.Open(journal.StatePath(""))
	if err == nil {
		defer dir.Close()
		left, err = dir.Names(cluster.JournalSuffix)
	}
	if (err != nil || len(left) == 0) && named == (cluster.Access{}) {
		return nil, nil, nil // cleaning up for Docker says what cannot be read there
	}
	if err := handOver(); err != nil {
		return nil, nil, fmt.Errorf("clean Kubernetes clusters: %w", err)
	}
	return nil, nil, nil
}
