package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/kubernetes"
)

// Called by the first name, toll is a kubectl plug-in, and kubectl has the command toll. By the
// second name kubectl's shell completion asks it for words (kubectl 1.26 and later).
const (
	kubectlName     = "kubectl-toll"
	kubectlComplete = "kubectl_complete-toll"

	// kubectlEnv tells toll that kubectl started it. toll sets it itself, because kubectl passes
	// nothing to its plug-ins.
	kubectlEnv = "BRIDGETOLL_KUBECTL"
)

// asKubectl turns a kubectl plug-in's command line into one of toll. It returns others unchanged.
func asKubectl(argv []string) ([]string, error) {
	if len(argv) == 0 {
		return argv, nil
	}
	args := argv[1:]
	switch filepath.Base(argv[0]) {
	case kubectlName:
	case kubectlComplete:
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	default:
		return argv, nil
	}
	return append([]string{pluginCommand}, args...), os.Setenv(kubectlEnv, "1")
}

// forKubectl makes the cluster the default of commands that can measure there.
func forKubectl(root *cobra.Command) {
	if os.Getenv(kubectlEnv) == "" {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + root.Name()}
	for _, c := range append(root.Commands(), root) {
		f := c.Flags().Lookup("on")
		if f == nil {
			continue
		}
		if list, is := f.Value.(pflag.SliceValue); is {
			_ = list.Replace([]string{kubernetes.Name}) // a list of words takes any
			f.DefValue = f.Value.String()
		}
	}
}
