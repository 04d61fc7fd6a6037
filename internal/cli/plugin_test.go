package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestAsPlugin(t *testing.T) {
	for _, tt := range []struct {
		name string
		argv string
		want string
		env  map[string]string // "": removed
	}{
		{"no-plugin", "toll toll compare", "toll toll compare", nil},
		{"alone", "/p/docker-toll toll", "toll", nil},
		{"command", "docker-toll toll compare bridge --rounds 2", "toll compare bridge --rounds 2",
			nil},
		{"called-directly", "docker-toll compare --rounds 2", "toll compare --rounds 2", nil},
		{"called-without", "docker-toll", "toll", nil},
		{"called-with-a-flag", "docker-toll --rounds 2 --context x", "toll --rounds 2 --context x",
			nil},
		{"metadata", "docker-toll docker-cli-plugin-metadata", "toll docker-cli-plugin-metadata",
			nil},
		{"help", "docker-toll help toll compare", "toll help compare", nil},
		{"help-of-a-flag", "docker-toll toll --help", "toll --help", nil},
		{"completion", "docker-toll __complete toll compare --fr", "toll __complete compare --fr",
			nil},
		{"completion-without-descriptions", "docker-toll __completeNoDesc toll c",
			"toll __completeNoDesc c", nil},
		{"host", "docker-toll -D -H unix:///a -H=unix:///b toll modes -c", "toll modes -c",
			map[string]string{"DOCKER_HOST": "unix:///b"}},
		{"context", "docker-toll --log-level debug --context c toll", "toll",
			map[string]string{"DOCKER_CONTEXT": "c", "DOCKER_HOST": ""}},
		{"config-and-tls", "docker-toll --config /c --tlsverify --tlskey k toll", "toll",
			map[string]string{"DOCKER_CONFIG": "/c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := map[string]string{"DOCKER_HOST": "unix:///env", "DOCKER_CONTEXT": "",
				"DOCKER_CONFIG": ""}
			for name, value := range was {
				t.Setenv(name, value)
			}
			got, err := asPlugin(strings.Fields(tt.argv))
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			for name, value := range was {
				if changed, ok := tt.env[name]; ok {
					value = changed
				}
				if now := os.Getenv(name); now != value {
					t.Errorf("%s is %q, want %q", name, now, value)
				}
			}
		})
	}
}

// Docker ends its plug-ins by closing a socket.
func TestEndWithDocker(t *testing.T) {
	at := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv(dockerSocketEnv, at)
	ctx, cancel := context.WithCancelCause(context.Background())
	if err := endWithDocker(cancel); err != nil {
		t.Fatal(err)
	}
	if now := os.Getenv(dockerSocketEnv); now != "" {
		t.Errorf("what toll starts would find %s=%s", dockerSocketEnv, now)
	}
	docker, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := context.Cause(ctx); err != nil {
		t.Errorf("ended before docker did: %v", err)
	}
	docker.Close()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("not ended")
	}
	if err, want := context.Cause(ctx), (signaled{syscall.SIGTERM}); !errors.Is(err, want) {
		t.Errorf("ended by %v, want %v", err, want)
	}
}

// This test connects to no daemon.
func TestDockerPlugin(t *testing.T) {
	t.Parallel()
	docker, err := exec.LookPath("docker")
	if err != nil {
		pathtest.SkipOrFail(t, "no docker command: %v", err)
	}
	config := t.TempDir()
	plugins := filepath.Join(config, "cli-plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pathtest.Toll(t), filepath.Join(plugins, pluginName)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		var out, errOut bytes.Buffer
		c := exec.Command(docker, args...)
		c.Env = append(os.Environ(), "DOCKER_CONFIG="+config, "DOCKER_HOST=unix://"+config+"/none")
		c.Stdout, c.Stderr = &out, &errOut
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		return out.String(), errOut.String(), c.ProcessState.ExitCode()
	}
	for _, tt := range []struct {
		name string
		args string
		code int
		want string // in what it prints
	}{
		{"listed", "--help", exitOK, "Measure what container networks cost"},
		{"version", "toll version", exitOK, "toll "},
		{"help", "toll compare --help", exitOK, "docker toll compare"},
		{"help-command", "help toll ladder", exitOK, "docker toll ladder"},
		{"flags", "toll compare bridge --load rr --dry-run --seed 7", exitOK, "The first round:"},
		{"after-docker's-own", "--log-level error toll published --help", exitOK,
			"docker toll published"},
		{"its-host", "--host unix:///nowhere/d.sock toll modes bridge --on docker", exitOK,
			"/nowhere/d.sock"},
		{"error", "toll compare teleport", exitUsage, "toll: error: "},
		{"completes-commands", "__complete toll comp", exitOK, "compare\tMeasure"},
		{"completes-flags", "__complete toll compare --budg", exitOK, "--budget"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if version := release(t, docker); strings.HasPrefix(tt.args, "__complete") &&
				version < 23 {
				t.Skipf("docker %d does not complete words of plug-ins", version)
			}
			stdout, stderr, code := run(strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s%s", code, tt.code, tt.want, stdout,
					stderr)
			}
		})
	}
}

// release returns the first number of the version.
func release(t *testing.T, docker string) (n int) {
	t.Helper()
	out, err := exec.Command(docker, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(out), "Docker version %d.", &n); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return n
}

func TestMetadata(t *testing.T) {
	var out bytes.Buffer
	if err := printMetadata(&out); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"SchemaVersion", "Vendor", "Version", "ShortDescription"} {
		if got[k] == "" {
			t.Errorf("docker needs %s: %s", k, &out)
		}
	}
	if got["SchemaVersion"] != "0.1.0" { // docker reads others differently, or not at all
		t.Errorf("a schema that docker may not read: %s", &out)
	}
}

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
		{"command", []string{"kubectl-toll", "mesh", "--context", "c"}, "toll mesh --context c",
			true},
		{"a-word-of-its-own", []string{"kubectl-toll", "toll"}, "toll toll", true},
		{"completion", []string{"/p/kubectl_complete-toll", "mesh", "--no"},
			"toll __complete mesh --no", true},
		{"nothing", nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(kubectlEnv, "")
			got, err := asKubectl(tt.argv)
			if err != nil || strings.Join(got, " ") != tt.want ||
				(os.Getenv(kubectlEnv) != "") != tt.is {
				t.Errorf("%q, %v, %s=%q; want %q", got, err, kubectlEnv, os.Getenv(kubectlEnv),
					tt.want)
			}
		})
	}
}

func TestForKubectl(t *testing.T) {
	t.Setenv(kubectlEnv, "1")
	root := newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	for _, c := range append(root.Commands(), root) {
		f := c.Flags().Lookup("on")
		if f == nil {
			continue
		}
		if f.Value.String() != "[kubernetes]" || f.DefValue != "[kubernetes]" || f.Changed {
			t.Errorf("%s: --on is %s, its default %s, changed: %t", c.Name(), f.Value, f.DefValue,
				f.Changed)
		}
	}
	if _, out, _ := toll(t, "mesh", "--help"); !testgolden.HasLine(out,
		"  kubectl toll mesh [[NAME=]MACHINE…] [flags]") {
		t.Errorf("the help of mesh does not say how it is called:\n%s", out)
	}
	if code, _, said := toll(t, "compare", "host", "--on", "lab", "--dry-run"); code != exitOK {
		t.Errorf("--on lab: exit code %d: %s", code, said)
	}
}
