package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestAsKubectl(t *testing.T) {
	for _, tt := range []struct {
		name string
		argv []string
		want string
		is   bool
	}{
		{"no-plugin", []string{"toll", "mesh"}, "toll mesh", false},
		{"docker's", []string{"docker-toll", "toll", "mesh"}, "docker-toll toll mesh", false},
		{"alone", []string{"/p/kubectl-toll"}, "toll", true},
		{"command", []string{"kubectl-toll", "mesh", "--context", "c"}, "toll mesh --context c", true},
		{"a-word-of-its-own", []string{"kubectl-toll", "toll"}, "toll toll", true},
		{"completion", []string{"/p/kubectl_complete-toll", "mesh", "--no"}, "toll __complete mesh --no", true},
		{"nothing", nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(kubectlEnv, "")
			got, err := asKubectl(tt.argv)
			if err != nil || strings.Join(got, " ") != tt.want || (os.Getenv(kubectlEnv) != "") != tt.is {
				t.Errorf("%q, %v, %s=%q; want %q", got, err, kubectlEnv, os.Getenv(kubectlEnv), tt.want)
			}
		})
	}
}

// As a kubectl plug-in, toll measures the cluster by default, and its help shows the name by which
// it is called.
func TestForKubectl(t *testing.T) {
	t.Setenv(kubectlEnv, "1")
	root := newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	for _, c := range append(root.Commands(), root) {
		f := c.Flags().Lookup("on")
		if f == nil {
			continue
		}
		if f.Value.String() != "[kubernetes]" || f.DefValue != "[kubernetes]" || f.Changed {
			t.Errorf("%s: --on is %s, its default %s, changed: %t", c.Name(), f.Value, f.DefValue, f.Changed)
		}
	}
	if _, out, _ := toll(t, "mesh", "--help"); !strings.Contains(out, "kubectl toll mesh [[NAME=]MACHINE…] [flags]") {
		t.Errorf("the help of mesh does not say how it is called:\n%s", out)
	}
	if code, _, said := toll(t, "compare", "host", "--on", "lab", "--dry-run"); code != exitOK {
		t.Errorf("--on lab: exit code %d: %s", code, said)
	}
}
