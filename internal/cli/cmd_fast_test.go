package cli

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestFastRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"fast":                                              "needs one of on, off, status, watch",
		"fast up":                                           "takes no arguments",
		"fast on":                                           "needs ports, as toll ports lists them, or --all",
		"fast on --all 80":                                  "ports and --all contradict",
		"fast on 0":                                         `"0" is not a port`,
		"fast on 80 65536":                                  `"65536" is not a port`,
		"fast on http":                                      `"http" is not a port`,
		"fast on 80 --lease 0s":                             "--lease 0s: must be from 1s to 24h",
		"fast on 80 --lease 25h":                            "--lease 25h: must be from 1s to 24h",
		"fast on 80 --lease 1":                              "toll: hint: use 1s",
		"fast on 80 --lease x":                              "--lease \"x\": must be a time such as 250ms",
		"fast on 80 --format x":                             `unknown format "x"`,
		"fast on 80 --format benchfmt":                      "does not write the state of fast",
		"fast on 80 --parts x":                              `unknown part "x"`,
		"fast on 80 --parts=":                               "--parts is empty",
		"fast on --all --measure":                           "--measure needs port numbers",
		"fast on 80 --measure=ftp":                          "--measure: \"ftp\" is not a request that toll knows",
		"fast on 80 --measure=http://x/":                    "is not a request that toll knows",
		"fast on 80 --measure=":                             "--measure is empty",
		"fast on 80 --budget 3s":                            "--budget needs --measure",
		"fast on 80 --measure --live --quiet":               "--live and --quiet contradict each other",
		"fast on 80 81 --measure --save x":                  "--dsn, --save and --output work with one port only",
		"fast on 80 81 --measure --format json":             "--format json cannot hold the reports",
		"fast on 80 --dsn postgres://a@/b":                  "--dsn needs --measure=sql",
		"fast on 80 --measure --metric x=(.)":               "--metric needs --measure=run",
		"fast on 80 --timeout 3s":                           "--timeout needs --measure",
		"fast on 80 --save x":                               "--save needs --measure",
		"fast on 80 --measure=http --timeout 3s":            "--timeout needs --measure=stream, sql or run",
		"fast on 80 --measure=sql":                          "needs the database's --dsn",
		"fast on 80 81 --measure=sql --dsn postgres://a@/b": "--dsn, --save and --output work with one port only",
		"fast on 80 --measure=sql --dsn postgres://a:hunter22@/b":             "contains a password",
		"fast on 80 --measure=sql --dsn postgres://a@/b?host=/run":            "has a host, a socket or a port among its options",
		"fast on 80 --measure=sql --dsn postgres://a@10.1.2.3/b":              "host is not 127.0.0.1, ::1 or localhost",
		"fast on 80 --measure=sql --dsn postgres://a@localhost:81/b":          "port is not 80",
		"fast on 80 --measure=sql --dsn x":                                    "the DSN is not a URL",
		"fast on 80 --measure=sql --dsn postgres://a@/b --password-env NONE_": "hint: export NONE_=…; sudo --preserve-env=NONE_",
		"fast on 80 --measure=sql:postgres://a:hunter22@/b":                   "--measure=sql:…: no such load",
		"fast on 80 --measure=run:hunter22":                                   "hint: --measure=run --client COMMAND",
		"fast on 80 --measure=stream:llama":                                   "hint: --measure=stream --model NAME",
		"fast on 80 --measure=stream:/x":                                      "is not that of an OpenAI-compatible endpoint",
		"fast on 80 --measure=stream --prompt=":                               "--prompt is empty",
		"fast on 80 --measure=stream --api-key-env NONE_":                     "no such environment variable",
		"fast on 80 --measure=stream --model x --query y":                     "--query needs --measure=sql",
		"fast on 80 --measure=run":                                            "no client is given: give --client or --recipe",
		"fast on 80 --measure=run --recipe redos":                             "unknown recipe",
		"fast on 80 --measure=run --client {port2}":                           "--client has {port2}",
		"fast on 80 --measure=run --client x --metric x":                      "it must be NAME=REGEXP",
		"fast on 80 --measure=run --client x --metric x=(.) --metric x=(.)":   "the name x is used twice",
		"fast on 80 --measure=run --client x --seconds 30":                    "the client alone runs for 30 s",
		// the hint is a command that can be typed
		strings.TrimPrefix(fast.ErrOff.Hint(), "sudo toll ") + " --parts x": `unknown part "x"`,
		"fast watch --lease 1ms":        "--lease 1ms: must be from 1s to 24h",
		"fast watch 80":                 "takes no arguments",
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
	for _, line := range []string{"fast on --all", "fast on 80 --lease 5m"} {
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

func TestBySudo(t *testing.T) {
	e := env{args: []string{"fast", "on", "80", "--measure=run", "--client", "curl {addr}; it's"}}
	if got, want := bySudo(e),
		`sudo toll fast on 80 --measure=run --client 'curl {addr}; it'\''s'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A dry run connects to nothing.
func TestMeasureDryRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	for word, client := range map[string]string{"auto": "auto, found by trying", "http": "http /"} {
		m := &measurement{measureFlags: &measureFlags{word: word}}
		if _, _, err := m.asker(t.Context(), dial, 80); err == nil {
			t.Errorf("%s: nothing listens at %s, but it answers", word, dial)
		}
		m.run.dryRun = true
		_, load, err := m.asker(t.Context(), dial, 80)
		if err != nil || workload.ExecOf(load).Program.Client != client {
			t.Errorf("%s: %+v, %v", word, load, err)
		}
	}
}

func TestTried(t *testing.T) {
	for _, c := range []struct {
		verdicts tried
		kept     bool
		says     string
	}{
		{tried{stats.Better: 1, stats.Same: 1}, true, "nothing certainly worse"},
		{tried{stats.Better: 1, stats.Unclear: 1}, true, "nothing certainly worse"},
		{tried{stats.Better: 1, stats.Worse: 1}, false, "something was certainly worse, although"},
		{tried{stats.Worse: 1}, false, "and nothing better"},
		{tried{stats.Unclear: 1, stats.Same: 1}, false, "a longer --budget"},
		{tried{stats.Same: 1}, false, "nothing was better"},
		{tried{}, false, "nothing was better"},
	} {
		if kept, why := c.verdicts.helped(); kept != c.kept || !strings.Contains(why, c.says) {
			t.Errorf("%v: %t, %s", c.verdicts, kept, why)
		}
	}
	metrics := func(names ...string) map[string]analysis.Metric {
		out := map[string]analysis.Metric{}
		for i, n := range names {
			out[n] = analysis.Metric{Ratio: &analysis.Ratio{
				Verdict: []stats.Verdict{stats.Better, stats.Worse, stats.Same}[i]}}
		}
		return out
	}
	program := &sample.Program{Gauges: []sample.Gauge{{Name: "a"}, {Name: "b"}}}
	for want, c := range map[string]struct {
		load  sample.Load
		cells []analysis.Cell
	}{
		"map[better:1 worse:1]": {sample.Load{
			Kind: workload.Exec, Options: sample.ExecOptions{Program: program}},
			[]analysis.Cell{{Metrics: metrics("a", "b", workload.Elapsed)}}},
		"map[better:1]": {sample.Load{
			Kind: workload.Exec, Options: sample.ExecOptions{Program: &sample.Program{}}},
			[]analysis.Cell{{Metrics: metrics(workload.Elapsed, workload.RTT)}}},
		"map[better:1 same:1]": {sample.Load{Kind: workload.SQL},
			[]analysis.Cell{{Baseline: true, Metrics: metrics(workload.LatencyP50)},
				{Metrics: metrics(workload.LatencyP50, workload.RTT, workload.ConnectTime)}}},
		"map[worse:1]": {sample.Load{Kind: workload.Chat},
			[]analysis.Cell{{Metrics: metrics("x", workload.GapP50)}}},
	} {
		r := &analysis.Report{}
		r.Plan.Loads, r.Cells = []sample.Load{c.load}, c.cells
		got := tried{}
		if got.add(r); fmt.Sprint(got) != want {
			t.Errorf("%s: %v", want, got)
		}
	}
}
