package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
)

func TestFastRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"fast": "toll: error: toll fast needs one of on, off, status, watch\ntoll: hint: toll " +
			"fast --help\n",
		"fast up": "toll: error: toll fast takes no arguments, \"up\" was given\ntoll: hint: see " +
			"toll fast --help\n",
		"fast on": "toll: error: toll fast on needs ports, as toll ports lists them, or " +
			"all\ntoll: " +
			"hint: toll fast on all\n",
		"fast on 80 all": "toll: error: all includes the other ports\ntoll: hint: toll fast on " +
			"all\n",
		"fast on 0": "toll: error: \"0\" is not a port: must be from 1 to 65535\ntoll: hint: toll " +
			"fast on 8080\n",
		"fast on 80 65536": "toll: error: \"65536\" is not a port: must be from 1 to " +
			"65535\ntoll: hint: toll " +
			"fast on 8080\n",
		"fast on http": `toll: error: "http" is not a port: must be from 1 to 65535; http ` +
			`usually has ` +
			"80/tcp\ntoll: hint: toll fast on 8080\n",
		"fast on 80 --lease 0s":  "toll: error: --lease 0s: must be from 1s to 24h\n",
		"fast on 80 --lease 25h": "toll: error: --lease 25h: must be from 1s to 24h\n",
		"fast on 80 --lease 1": "toll: error: --lease \"1\": must be a time such as 250ms, 10s " +
			"or 5m\ntoll: " +
			"hint: use 1s\n",
		"fast on 80 --lease x": "toll: error: --lease \"x\": must be a time such as 250ms, 10s " +
			"or 5m\ntoll: " +
			"hint: see toll fast on --help\n",
		"fast on 80 --format x": "toll: error: unknown format \"x\"\ntoll: hint: formats are: " +
			"table, json, " +
			"markdown, html\n",
		"fast on 80 --format benchfmt": "toll: error: --format benchfmt does not write the " +
			"state of fast\ntoll: hint: " +
			"formats are: table, json, markdown, html\n",
		"fast on 80 --parts x": "toll: error: unknown part \"x\"\ntoll: hint: --parts " +
			"connect,links\n",
		"fast on 80 --parts=": "toll: error: --parts is empty\ntoll: hint: leave it out for the " +
			"default, or see " +
			"toll fast on --help\n",
		// the hint is a command that can be typed
		strings.TrimPrefix(fast.ErrOff.Hint(), remedy.AsRoot("toll ")) + " --parts x": "toll: error: unknown part \"x\"\ntoll: hint: --parts connect,links\n",
		"fast watch --lease 1ms": "toll: error: --lease 1ms: must be from 1s to 24h\n",
		"fast watch 80": "toll: error: toll fast watch takes no arguments, \"80\" was " +
			"given\ntoll: hint: " +
			"see toll fast watch --help\n",
		"fast on --all": "toll: error: unknown flag: --all\ntoll: hint: toll fast on all\n",
		"fast off --all": "toll: error: unknown flag: --all\ntoll: hint: see toll fast off " +
			"--help\n",
		"fast status 80": "toll: error: toll fast status takes no arguments, \"80\" was " +
			"given\ntoll: hint: " +
			"see toll fast status --help\n",
		"fast status --output /dev/x/y": "toll: error: write output: open /dev/x/y: no such file or directory\ntoll: " +
			"hint: give --output a writable path\n",
	} {
		args := strings.Fields(line)
		code, out, stderr := toll(t, args...)
		checkRefusal(t, args, code, stderr)
		want := exitUsage
		if strings.HasSuffix(line, "--output /dev/x/y") {
			want = exitFailed
		}
		if code != want && os.Geteuid() == 0 || stderr != says || out != "" {
			t.Errorf("toll %s: exit %d, %s %q, want %q", line, code, out, stderr, says)
		}
	}
}

func TestFastNeeds(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	for _, line := range []string{"fast on all", "fast on 80 --lease 5m"} {
		code, _, stderr := toll(t, strings.Fields(line)...)
		says := "toll: error: no Docker Engine answers, so its published ports are unknown (there " +
			"is no Docker socket at /nowhere/docker.sock)\ntoll: hint: " +
			dockerapi.StartEngine() + ", or set DOCKER_HOST to its address\n"
		if os.Geteuid() != 0 {
			says = "toll: error: toll fast needs root\ntoll: hint: sudo toll " + line + "\n"
		}
		if code != exitNothing || stderr != says {
			t.Errorf("toll %s: exit %d, %q, want %q", line, code, stderr, says)
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
