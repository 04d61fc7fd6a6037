package main

import (
	"strings"
	"testing"
)

// A results file, which anyone may have written, does not start programs.
func TestRepeatedCommands(t *testing.T) {
	for line, says := range map[string]string{
		"run --client id":                "it does not measure modes",
		"stream a=http://127.0.0.1:80":   "it does not measure modes",
		"clean":                          "it does not measure modes",
		"fast on --all":                  "it does not measure modes",
		"compare --proxy=/bin/id":        "a file may not decide --proxy",
		"--rounds 6 --proxy /bin/id":     "a file may not decide --proxy",
		"ladder --on peer --peer a@b":    "a file may not decide --peer",
		"compare bridge --kubeconfig k":  "a file may not decide --kubeconfig",
		"compare bridge --output=/etc/x": "a file may not decide --output",
		"compare --no-such-flag":         "unknown flag",
		"nothing":                        "unknown command",
	} {
		err := checkRepeated(strings.Fields(line))
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{"", "compare", "compare bridge --rounds 6 -6 --pin near",
		"--budget 9s", "ladder --from container", "trace publish-nat", "advise --lever mtu", "compare --proxy off"} {
		if err := checkRepeated(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
