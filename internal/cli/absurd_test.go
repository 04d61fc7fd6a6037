package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func toll(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("toll %q panics: %v", args, p)
		}
	}()
	code = run(context.Background(), env{stdout: &out, stderr: &errs}, args)
	return code, out.String(), errs.String()
}

func commands(t *testing.T) map[string][]string {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	needs := map[string][]string{
		"compare":   {"host", "--dry-run"},
		"ladder":    {"bridge", "--dry-run"},
		"advise":    {"bridge", "--dry-run"},
		"trace":     {"bridge", "--dry-run"},
		"scale":     {"bridge", "--dry-run"},
		"mesh":      {"--dry-run"},
		"run":       {"host", "--dry-run", "--server", "true {port}", "--client", "true {addr}"},
		"stream":    {"http://127.0.0.1:1", "--dry-run"},
		"sql":       {"postgres://a@127.0.0.1:1/b", "--dry-run"},
		"published": nil, "modes": {"host"}, "path": {"nothing"}, "ports": {"--results", none},
		"report":  {none},
		"view":    {none},
		"predict": {none},
		"diff":    {none, none},
		"gate":    {none, "bridge/host bulk >= 0.8"},
		"history": {none}, "explain": {"nothing"}, "fast": nil, "kubernetes": nil,
	}
	for _, c := range newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).Commands() {
		if _, ok := needs[c.Name()]; !ok && !c.Hidden && !c.IsAdditionalHelpTopicCommand() &&
			!slices.Contains([]string{"clean", "image", "version", "completion", "help"},
				c.Name()) {
			t.Errorf("nothing is known of toll %s", c.Name())
		}
	}
	return needs
}

func visible(t *testing.T, command string) []*pflag.Flag {
	t.Helper()
	var c *cobra.Command
	for _, x := range newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).Commands() {
		if x.Name() == command {
			c = x
		}
	}
	var out []*pflag.Flag
	c.Flags().VisitAll(func(f *pflag.Flag) { out = append(out, f) })
	return out
}

func checkRefusal(t *testing.T, args []string, code int, stderr string) {
	t.Helper()
	if code == exitOK || !strings.HasPrefix(stderr, "toll: error: ") {
		t.Errorf("toll %q: exit %d, %q", args, code, stderr)
	}
	for _, r := range strings.ReplaceAll(stderr, "\n", "") {
		if !unicode.IsGraphic(r) {
			t.Errorf("toll %q prints %U: %q", args, r, stderr)
		}
	}
}

func TestEmptyLists(t *testing.T) {
	n := 0
	for command, needs := range commands(t) {
		for _, f := range visible(t, command) {
			if f.Value.Type() != "stringSlice" {
				continue
			}
			n++
			args := slices.Concat([]string{command}, needs, []string{"--" + f.Name + "="})
			code, _, stderr := toll(t, args...)
			checkRefusal(t, args, code, stderr)
			if said, _, _ := strings.Cut(stderr, "\n"); code != exitUsage ||
				said != "toll: error: --"+f.Name+" is empty" {
				t.Errorf("toll %q: exit %d, %s", args, code, stderr)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d lists were tried", n)
	}
}

var absurd = map[string][]string{
	"int": {"-1", "-9223372036854775808", "9223372036854775807", "1e309", "NaN", "", "0x",
		"\x1b[2J\u202e"},
	"uint64":   {"-1", "18446744073709551616", "NaN", "", "\x1b"},
	"float64":  {"NaN", "-Inf", "+Inf", "1e309", "-1", "1e300", "", "\x1b"},
	"duration": {"-1s", "0s", "NaN", "1e309s", "9999999999h", "2562047h", "1ns", "", "\x1b"},
	"bool":     {"2", "", "NaN", "\x1b"},
}

var absurdTexts = []string{"\x1b]0;x\a\u202e\u009b", "\xff", "NaN", "-1", "1e309",
	strings.Repeat("9", 400), ",", "a\nb"}

// The command line refuses no text for these flags.
var free = []string{"save", "output", "server", "client", "ready", "prompt", "model", "query",
	"image", "proxy", "congestion", "parent", "metric",
	"peer", // TestParseHost has the invalid hosts
	"pod"}  // endpoints.txtar has invalid names

func TestAbsurdFlags(t *testing.T) {
	// At their bounds these mean: no slices, no limit, and no more rounds than necessary.
	means := map[string]string{"duration 0s": "slice", "duration 2562047h": "budget",
		"duration 1ns": "budget", "int 9223372036854775807": "rounds sweeps at-once"}
	for command, needs := range commands(t) {
		for _, f := range visible(t, command) {
			if f.Name == "help" || slices.Contains(free, f.Name) {
				continue
			}
			values, ok := absurd[f.Value.Type()]
			if !ok {
				values = absurdTexts
			}
			for _, v := range values {
				if slices.Contains(strings.Fields(means[f.Value.Type()+" "+v]), f.Name) {
					continue
				}
				args := slices.Concat([]string{command}, needs, []string{"--" + f.Name + "=" + v})
				if l := loadsWith(f.Name); l != nil && command == "compare" {
					args = append(args, "--load="+l[0])
				}
				code, _, stderr := toll(t, args...)
				checkRefusal(t, args, code, stderr)
			}
		}
	}
}

// A flag of a load that is not measured is refused whatever its value.
func TestFlagsOfOtherLoads(t *testing.T) {
	flags := map[string]string{"bidir": "true", "under-load": "true",
		"gso": "true", "nodelay": "on", "send": "copy", "bitrate": "1mbit", "datagram": "1400",
		"slice": "4ms"}
	var f traffic
	f.addLoads(pflag.NewFlagSet("", pflag.ContinueOnError), loadNames)
	for _, flag := range append(slices.Collect(maps.Keys(f.loads.flags)), sliceFlag) {
		loads := loadsWith(flag)
		value := flags[flag]
		if value == "" {
			value = "7"
		}
		other := loadNames[slices.IndexFunc(loadNames, func(n string) bool {
			return !slices.Contains(loads, n)
		})]
		code, _, stderr := toll(t, "compare", "host", "--dry-run", "--load", other,
			"--"+flag+"="+value)
		want := fmt.Sprintf("toll: error: --%s is for %s; the loads here are: %s\n", flag,
			strings.Join(loads, ", "), other)
		if code != exitUsage || !strings.HasPrefix(stderr, want) {
			t.Errorf("--load %s --%s: exit %d, %s", other, flag, code, stderr)
		}
	}
	for _, f := range visible(t, "compare") {
		loads, text := loadsWith(f.Name), f.Usage
		if head, _, ok := strings.Cut(text, ": "); loads != nil && f.Name != "nodelay" &&
			(!ok || head != strings.Join(loads, ", ")) {
			t.Errorf("--%s is for %v, its help says: %s", f.Name, loads, text)
		}
	}
	for line, want := range map[string]string{
		"scale bridge --connections 4 --dry-run": "toll: error: --connections is for rr, crr; the loads here are: bulk\ntoll: " +
			"hint: leave --connections out, or add --load rr\n",
		"ladder bridge --load rr --streams 3 --dry-run": "toll: error: --streams is for bulk, bulk-reverse, udp; the loads here are: " +
			"rr\ntoll: hint: leave --streams out, or add --load bulk\n",
		"mesh --load rr --streams 3 --dry-run": "toll: error: --streams is for bulk, bulk-reverse, udp; the loads here are: " +
			"rr\ntoll: hint: leave --streams out, or add --load bulk\n",
		"--load rr --streams 3 --dry-run": "toll: error: --streams is for bulk, bulk-reverse, udp; the loads here are: " +
			"rr\ntoll: hint: leave --streams out, or add --load bulk\n",
		// Under load, rr takes the stream's flags.
		"compare nothing --load rr --under-load --write-size 4k": "toll: error: unknown mode \"nothing\"\ntoll: hint: toll modes lists all modes\n",
	} {
		if code, _, stderr := toll(t, strings.Fields(line)...); code != exitUsage || stderr != want {
			t.Errorf("toll %s: exit %d, %q, want %q", line, code, stderr, want)
		}
	}
}

func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	results, err := os.ReadFile("../../internal/record/sample/testdata/run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("run"), results, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(at("run"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, err := range []error{os.Symlink("run", at("link")), os.Link(at("run"), at("hard")),
		os.Symlink(dir, at("dir")),
		os.Symlink("new", at("dangling")), os.Symlink("dangling", at("dangling2"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	read := [][]string{{"report"}, {"predict"}, {"published", "--against"}, {"ports", "--results"}}
	for _, output := range []string{"run", "link", "hard", "./run", "dir/run",
		"dir/../" + filepath.Base(dir) + "/link", fmt.Sprintf("/proc/self/fd/%d", f.Fd())} {
		if !filepath.IsAbs(output) {
			output = dir + "/" + output
		}
		for _, command := range read {
			args := append(slices.Clone(command), at("run"), "--output", output, "--force")
			code, _, stderr := toll(t, args...)
			if code != exitUsage { // nothing else refuses it, because of --force
				t.Errorf("toll %q: exit %d, %s", args, code, stderr)
			}
		}
	}
	write := [][]string{{"compare", "host"}, {"ladder", "bridge"}, {"trace"}, {"advise"}, {"scale"},
		{"mesh"},
		{"stream", "http://127.0.0.1:1"}, {"sql", "postgres://a@127.0.0.1:1/b"},
		{"run", "host", "--server", "x {port}", "--client", "x {addr}"}}
	for _, pair := range [][2]string{{"new", "new"}, {"new", "./new"}, {"dangling", "new"},
		{"dangling2", "dir/new"}, {"dir/dangling", "dangling2"}, {"run", "hard"}} {
		for _, command := range write {
			args := append(slices.Clone(command), "--save", dir+"/"+pair[0], "--output",
				dir+"/"+pair[1], "--force", "--dry-run")
			code, _, stderr := toll(t, args...)
			if code != exitUsage {
				t.Errorf("toll %q: exit %d, %s", args, code, stderr)
			}
		}
	}
	if now, err := os.ReadFile(at("run")); err != nil || !bytes.Equal(now, results) {
		t.Errorf("the results are gone: %d bytes, %v", len(now), err)
	}
	if _, err := os.Stat(at("new")); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
	if code, _, stderr := toll(t, "report", at("run"), "--output", at("other")); code != exitOK {
		t.Errorf("exit %d, %s", code, stderr)
	}
	for _, output := range []string{"/dev/null", "/dev/stdout"} {
		code, _, stderr := toll(t, "compare", "nothing", "--save", output, "--output", output)
		if want := "toll: error: unknown mode \"nothing\"\ntoll: hint: toll modes lists all " +
			"modes\n"; code != exitUsage || stderr != want {
			t.Errorf("exit %d, %q, want %q", code, stderr, want)
		}
	}
}

func TestBudgetTooShort(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"compare", "bridge", "--from", "host", "--pin", "far", "--budget", "2s",
			"--dry-run"}, "s, longer than its budget of 2 s: it makes 1 round at least"},
		{[]string{"compare", "bridge", "--from", "host", "--pin", "far", "--slice", "0", "--budget",
			"2s", "--dry-run"}, "s, longer than its budget of 2 s: it makes 6 rounds at least"},
		{[]string{"compare", "bridge", "--from", "host", "--budget", "20s", "--dry-run"}, ""},
		{[]string{"compare", "bridge", "--from", "host", "--rounds", "50", "--budget", "2s",
			"--dry-run"}, ""},
		{[]string{"run", "bridge", "--server", "x {port}", "--client", "x {addr} {seconds}",
			"--window", "2s", "--budget", "20s", "--dry-run"}, "the run will take about 37 s, longer than"},
		{[]string{"stream", "http://127.0.0.1:1", "--budget", "3s", "--dry-run"},
			"the run may take about"},
	} {
		code, stdout, stderr := toll(t, tt.args...)
		if code == exitNothing {
			t.Skip("there is no lab here: ", stderr)
		}
		// The speed of somebody else's server is not known.
		refused, said := tt.want != "" && tt.args[0] != "stream", stdout+stderr
		if (code == exitUsage) != refused || code != exitOK && !refused ||
			tt.want == "" == strings.Contains(said, " take about ") ||
			!strings.Contains(said, tt.want) {
			t.Errorf("toll %q: exit %d, %s", tt.args, code, said)
		}
	}
}
