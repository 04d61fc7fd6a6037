package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// withPlugin has the command print the credentials.
func (s *apiserver) withPlugin(command string, args ...string) cluster.Access {
	s.t.Helper()
	a := s.access()
	text, err := os.ReadFile(a.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		s.t.Fatal(err)
	}
	c["users"] = []any{map[string]any{"name": "u", "user": map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
		"command": command, "args": args, "installHint": "get it"}}}}
	if text, err = json.Marshal(c); err != nil {
		s.t.Fatal(err)
	}
	a.Kubeconfig = filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(a.Kubeconfig, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return a
}

func TestPlugin(t *testing.T) {
	s := newAPIServer(t, "a")
	good := fmt.Sprintf(
		`echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", `+
			`"status": {"token": %q}}'`, fakeToken)
	for name, tt := range map[string]struct {
		command, script string
		want            string // "" for success
	}{
		"prints-a-token":   {"sh", good, ""},
		"knows-the-server": {"sh", `test -n "$KUBERNETES_EXEC_INFO" && ` + good, ""},
		"floods": {"sh", "yes", "the kubeconfig's credential plug-in sh fails (getting " +
			"credentials: exec: " +
			"executable sh failed with exit code 1)"},
		"fails": {"sh", "exit 1", "the kubeconfig's credential plug-in sh fails (getting " +
			"credentials: exec: " +
			"executable sh failed with exit code 1)"},
		"prints-garbage": {"sh", `printf '\033[31m'`,
			"the kubeconfig's credential plug-in sh fails (getting credentials: decoding " +
				"stdout: yaml: control characters are not allowed)"},
		"is-absent": {"nowhere-to-be-found", "",
			"the kubeconfig's credential plug-in nowhere-to-be-found is not installed " +
				`(exec: "nowhere-to-be-found": executable file not found in $PATH)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := connect(t.Context(), s.withPlugin(tt.command, "-c", tt.script))
			if err == nil {
				_, err = c.version(t.Context())
			}
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "":
			case !errors.Is(err, machine.ErrUnsupported) || hint.Of(err) == "" ||
				testgolden.Stable(err.Error()) != tt.want:
				t.Errorf("hint: %s: %q, want %q", hint.Of(err), testgolden.Stable(err.Error()), tt.want)
			}
		})
	}
}

func TestPluginIsBounded(t *testing.T) {
	for name, tt := range map[string]struct{ limit, script, says string }{
		"hangs": {"200ms", "sleep 300 & sleep 300",
			"toll: credential plug-in: sh did not answer within 200ms\n"},
		"floods":  {"1m", "yes", "toll: credential plug-in: sh: the answer is too long\n"},
		"escapes": {"1m", `printf 'enter \033[2Jcode\n' >&2`, "enter \\x1b[2Jcode\n"},
		"floods-stderr": {"1m", "head -c 1000000 /dev/zero | tr '\\0' x >&2",
			strings.Repeat("x", maxPrompts)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			cmd := exec.CommandContext(t.Context(), local.Self, pluginArg, tt.limit, "sh", "-c",
				tt.script)
			cmd.Stderr = &said
			if out, err := cmd.Output(); len(out) > 0 ||
				(err != nil) != strings.HasPrefix(tt.says, "toll:") || said.String() != tt.says {
				t.Errorf("%v, prints %d bytes, says %.200q", err, len(out), said.String())
			}
		})
	}
}
