package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// zsh completes only on a terminal.
func TestCompletionInShells(t *testing.T) {
	bin, dir := binary(t), t.TempDir()
	if err := os.Symlink(bin, filepath.Join(dir, "toll")); err != nil {
		t.Fatal(err)
	}
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-f", "-n"},
		"fish": {"--no-config", "-n"}} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell + " is not installed")
			}
			script, err := exec.CommandContext(t.Context(), bin, "completion", shell).Output()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "script."+shell)
			if err := os.WriteFile(file, script, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), path, append(check, file)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if shell == "fish" {
				completesInFish(t, path, dir, file)
			}
		})
	}
}

func completesInFish(t *testing.T, fish, dir, script string) {
	for line, want := range map[string]string{
		"toll compare --from ":      "container\tanother container",
		"toll compare --from host,": "host,container\tanother container",
		"toll compare publish-n":    "publish-nat\t",
		"toll lad":                  "ladder\t",
		"toll ladder --format ht":   "html",
	} {
		c := exec.CommandContext(t.Context(), fish, "--no-config", "-c",
			"source "+script+"; complete -C '"+line+"'")
		c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v: no %q in:\n%s", line, err, want, out)
		}
	}
}
