package cli

import (
	"errors"
	"strings"
	"testing"
)

// A results file, which anyone may have written, does not start programs.
func TestRepeatedCommands(t *testing.T) {
	for line, says := range map[string]string{
		"run --client id":                "it is not a measurement of modes",
		"stream a=http://127.0.0.1:80":   "it is not a measurement of modes",
		"trace a=redis://10.0.0.1:6379":  "it measures a server",
		"clean":                          "it is not a measurement of modes",
		"fast on all":                    "it is not a measurement of modes",
		"compare --proxy=/bin/id":        "a results file may not set --proxy",
		"--rounds 6 --proxy /bin/id":     "a results file may not set --proxy",
		"ladder --on peer --peer a@b":    "a results file may not set --peer",
		"compare bridge --kubeconfig k":  "a results file may not set --kubeconfig",
		"compare bridge --output=/etc/x": "a results file may not set --output",
		"compare --no-such-flag":         "unknown flag: --no-such-flag",
		"-h":                             "it prints help",
		"compare --help-all":             "a results file may not set --help-all",
		"compare bridge --dry-run":       "a results file may not set --dry-run",
		"compare -- bridge":              "it contains --",
		"nothing":                        `unknown command "nothing"`,
	} {
		err := checkRepeated(strings.Fields(line))
		cause := err
		for next := err; next != nil; next = errors.Unwrap(next) {
			cause = next
		}
		if err == nil || exitCode(err) != exitUsage || cause.Error() != says {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{"", "compare", "compare bridge --rounds 6 -6 --pin near",
		"--budget 9s", "ladder --from container", "trace publish-nat", "advise --lever mtu",
		"compare --proxy off"} {
		if err := checkRepeated(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
