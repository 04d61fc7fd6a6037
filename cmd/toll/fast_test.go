package main

import (
	"os"
	"strings"
	"testing"
)

// What cannot be understood is refused before anything is read or changed.
func TestFastRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"fast":                             "needs one of on, off, status, watch",
		"fast up":                          "takes no arguments",
		"fast on":                          "needs ports, or --all",
		"fast on --all 80":                 "--all means every port",
		"fast on 0":                        `"0" is not a port`,
		"fast on 80 65536":                 `"65536" is not a port`,
		"fast on http":                     `"http" is not a port`,
		"fast on 80 --lease 0s":            "--lease 0s: must be from 1s to 24h",
		"fast on 80 --lease 25h":           "--lease 25h0m0s: must be from 1s to 24h",
		"fast on 80 --lease x":             "--lease",
		"fast on 80 --format x":            `unknown format "x"`,
		"fast on 80 --format benchfmt":     "does not write the state of fast",
		"fast on 80 --parts x":             `unknown part "x"`,
		"fast on 80 --parts=":              "--parts is empty",
		"fast on --all --measure":          "--measure asks ports that are named",
		"fast on 80 --measure=ftp":         "--measure=ftp: no such load",
		"fast on 80 --measure=http://x/":   "no such load",
		"fast on 80 --measure=":            "--measure= names no load",
		"fast on 80 --budget 3s":           "--budget is how long --measure takes",
		"fast on 80 --measure --budget 1s": "--budget 1s: must be from 2s to 10m",
		"fast watch --lease 1ms":           "--lease 1ms: must be from 1s to 24h",
		"fast watch 80":                    "takes no arguments",
		"fast off --all":                   "unknown flag",
		"fast status 80":                   "takes no arguments",
		"fast status --output /dev/x/y":    "write output",
	} {
		args := strings.Fields(line)
		code, out, stderr := toll(t, args...)
		checkRefusal(t, args, code, stderr)
		if want := map[bool]int{true: exitUsage, false: exitFailed}[!strings.Contains(line, "/dev/x")]; code != want && os.Geteuid() == 0 || !strings.Contains(stderr, says) || out != "" {
			t.Errorf("toll %s: exit %d, %s%s", line, code, stderr, out)
		}
	}
}

// Without root, and without an engine, what is missing is named.
func TestFastNeeds(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	for _, line := range []string{"fast on --all", "fast on 80"} {
		code, _, stderr := toll(t, strings.Fields(line)...)
		says := "no Docker Engine answers"
		if os.Geteuid() != 0 {
			says = "only root may load BPF programs"
		}
		if code != exitNothing || !strings.Contains(stderr, says) || !strings.Contains(stderr, "toll: hint: ") {
			t.Errorf("toll %s: exit %d, %s", line, code, stderr)
		}
	}
}
