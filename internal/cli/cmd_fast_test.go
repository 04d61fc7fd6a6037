package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
)

func TestFastRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"fast":                         "needs one of on, off, status, watch",
		"fast up":                      "takes no arguments",
		"fast on":                      "needs ports, as toll ports lists them, or all",
		"fast on 80 all":               "all includes the other ports",
		"fast on 0":                    `"0" is not a port`,
		"fast on 80 65536":             `"65536" is not a port`,
		"fast on http":                 `"http" is not a port`,
		"fast on 80 --lease 0s":        "--lease 0s: must be from 1s to 24h",
		"fast on 80 --lease 25h":       "--lease 25h: must be from 1s to 24h",
		"fast on 80 --lease 1":         "toll: hint: use 1s",
		"fast on 80 --lease x":         "--lease \"x\": must be a time such as 250ms",
		"fast on 80 --format x":        `unknown format "x"`,
		"fast on 80 --format benchfmt": "does not write the state of fast",
		"fast on 80 --parts x":         `unknown part "x"`,
		"fast on 80 --parts=":          "--parts is empty",
		// the hint is a command that can be typed
		strings.TrimPrefix(fast.ErrOff.Hint(), remedy.AsRoot("toll ")) + " --parts x": `unknown part "x"`,
		"fast watch --lease 1ms":        "--lease 1ms: must be from 1s to 24h",
		"fast watch 80":                 "takes no arguments",
		"fast on --all":                 "toll: hint: toll fast on all",
		"fast off --all":                "unknown flag",
		"fast status 80":                "takes no arguments",
		"fast status --output /dev/x/y": "write output",
	} {
		args := strings.Fields(line)
		code, out, stderr := toll(t, args...)
		checkRefusal(t, args, code, stderr)
		if want := map[bool]int{true: exitUsage, false: exitFailed}[!strings.Contains(line, "/dev/x")]; code != want && os.Geteuid() == 0 || !strings.Contains(stderr, says) || out != "" || strings.Contains(stderr, "hunter22") {
			t.Errorf("toll %s: exit %d, %s%s", line, code, stderr, out)
		}
	}
}

func TestFastNeeds(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	for _, line := range []string{"fast on all", "fast on 80 --lease 5m"} {
		code, _, stderr := toll(t, strings.Fields(line)...)
		says := "no Docker Engine answers"
		if os.Geteuid() != 0 {
			says = "toll: hint: sudo toll " + line + "\n"
		}
		if code != exitNothing || !strings.Contains(stderr, says) ||
			!strings.Contains(stderr, "toll: hint: ") {
			t.Errorf("toll %s: exit %d, %s", line, code, stderr)
		}
	}
}

func TestByRoot(t *testing.T) {
	e := env{args: []string{"run", "--client", "curl {addr}; it's", "127.0.0.1:80"}}
	if got, want := byRoot(e),
		remedy.AsRoot(`toll run --client 'curl {addr}; it'\''s' 127.0.0.1:80`); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
