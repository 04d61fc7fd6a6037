package lever

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range all {
		if seen[l.Name] || l.Gist == "" || l.Harms == "" || len(l.Permanent) == 0 ||
			(l.Tunes == "") == (l.Mode == "") {
			t.Errorf("%q is incomplete or there twice: %+v", l.Name, l)
		}
		seen[l.Name] = true
		if l.Isolation && l.GivesUp == "" {
			t.Errorf("%s does not say what isolation it gives up", l.Name)
		}
		for _, s := range l.Permanent {
			if s.Where == "" || len(s.Lines) == 0 {
				t.Errorf("%s: %+v", l.Name, s)
			}
			for _, line := range s.Lines {
				if len([]rune(line)) > 76 {
					t.Errorf("%s: %q is too long for 80 columns", l.Name, line)
				}
			}
		}
		for _, m := range append(l.For, l.Mode) {
			if _, ok := mode.Find(m); !ok && m != "" {
				t.Errorf("%s: there is no mode %s", l.Name, m)
			}
		}
		applies := false
		for _, m := range mode.Names() {
			v, ok := l.With(m, Host{CPUs: 4, Congestion: "vegas"})
			applies = applies || ok
			if ok && v == (sample.Variant{Mode: m}) {
				t.Errorf("%s changes nothing of %s", l.Name, m)
			}
		}
		if !applies {
			t.Errorf("%s is for no mode", l.Name)
		}
		if found, ok := Find(l.Name); !ok || found.Gist != l.Gist {
			t.Errorf("%s is not found", l.Name)
		}
	}
}

var (
	unitLine   = regexp.MustCompile(`^(\[\w+\]|\w+=.+|  .+)$`)
	sysctlLine = regexp.MustCompile(`^(#.*|[\w.-]+ = .+)$`)
	stands     = regexp.MustCompile(`[{]\w+[}]|\bMASK\b|=N$`)
)

// What makes a lever permanent is taken as it is by the shell, or by what reads the file.
func TestSnippets(t *testing.T) {
	shell := 0
	for _, l := range all {
		l = l.At(mode.PublishProxy, Host{CPUs: 4})
		for _, s := range slices.Concat(l.Permanent, l.OfPodman().Permanent) {
			text := strings.Join(s.Lines, "\n")
			ok := !stands.MatchString(text)
			each := func(line *regexp.Regexp) bool {
				return !slices.ContainsFunc(s.Lines, func(l string) bool { return !line.MatchString(l) })
			}
			switch where, _, _ := strings.Cut(s.Where, " "); {
			case strings.Contains(where, "daemon.json"):
				ok = ok && json.Valid([]byte(text))
			case regexp.MustCompile(`\.(service|socket|link),?$`).MatchString(where):
				ok = ok && each(unitLine)
			case strings.Contains(where, "sysctl.d"):
				ok = ok && each(sysctlLine)
			case strings.Contains(where, "compose.yaml"), strings.Contains(where, "modules-load.d"):
			default:
				shell++
				out, err := exec.Command("sh", "-n", "-c", text).CombinedOutput()
				if ok = ok && err == nil; err != nil {
					t.Logf("%s", out)
				}
			}
			if !ok {
				t.Errorf("%s: %s:\n%s", l.Name, s.Where, text)
			}
		}
	}
	if shell < 10 {
		t.Errorf("only %d snippets are for a shell", shell)
	}
}

// Packets are steered on the devices that a mode's paths cross, and no others.
func TestSteeredDevices(t *testing.T) {
	l, _ := Find("rps")
	for m, want := range map[mode.Name][]string{mode.Bridge: {"veth", "eth0"}, mode.Host: {"/lo/"},
		mode.PublishProxy: {"veth", "eth0", "/lo/"}} {
		var got []string
		for _, s := range l.At(m, Host{CPUs: 4}).Permanent {
			got = append(got, strings.Join(s.Lines, "\n"))
		}
		if !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s: %q, want %q", m, got, want)
		}
	}
}

func TestMask(t *testing.T) {
	for n, want := range map[int]string{1: "1", 2: "3", 32: "ffffffff", 36: "f,ffffffff",
		64: "ffffffff,ffffffff"} {
		if got := mask(n); got != want {
			t.Errorf("%d CPUs: %s, want %s", n, got, want)
		}
	}
}

func TestPlan(t *testing.T) {
	names := func(all []sample.Lever) (out []string) {
		for _, l := range all {
			out = append(out, l.Name)
		}
		return out
	}
	one := names(Plan(mode.Bridge, Host{CPUs: 1, Congestion: "reno"}, nil))
	for _, not := range []string{"queues", "xps", "congestion-reno", "nat"} {
		if slices.Contains(one, not) {
			t.Errorf("%s is tried with bridge on a machine with one CPU and reno", not)
		}
	}
	for _, want := range []string{"bigtcp", "gro", "congestion-cubic", "bridge-default", "netkit",
		"host"} {
		if !slices.Contains(one, want) {
			t.Errorf("%s is not tried", want)
		}
	}
	if got := names(Plan(mode.Host, Host{CPUs: 2}, nil)); slices.Contains(got, "host") ||
		slices.Contains(got, "bigtcp") || !slices.Contains(got, "bigtcp-lo") {
		t.Errorf("for host: %q", got)
	}
	if got := names(Plan(mode.PublishProxy, Host{CPUs: 2}, []string{"nat", "netkit"})); !slices.Equal(got, []string{"nat"}) {
		t.Errorf("of nat and netkit, for publish-proxy: %q", got)
	}
	many := Plan(mode.Bridge, Host{CPUs: 96}, []string{"xps"})
	if len(many) != 1 || many[0].Tune != "queues=8+xps=on" {
		t.Errorf("on 96 CPUs: %+v", many)
	}
}

func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		state, lever, want sample.Variant
		ok                 bool
	}{
		{v("bridge", ""), v("bridge", "gro=on"), v("bridge", "gro=on"), true},
		{v("bridge", "bigtcp=180000"), v("bridge", "gro=on+threaded=on"),
			v("bridge", "gro=on+threaded=on+bigtcp=180000"), true},
		{v("bridge", "gro=on"), v("bridge", "gro=on+threaded=on"),
			v("bridge", "gro=on+threaded=on"), true},
		{v("bridge", "congestion=reno"), v("bridge", "congestion=cubic"), sample.Variant{}, false},
		{v("bridge", "gro=on"), v("netkit", ""), v("netkit", "gro=on"), true},
		{v("netkit", ""), v("bridge-default", ""), sample.Variant{}, false},
		{v("netkit", ""), v("bridge", "rmem=16M"), v("netkit", "rmem=16M"), true},
	} {
		got, ok := Join(tt.state, tt.lever, "bridge")
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%v with %v: %v, %t", tt.state, tt.lever, got, ok)
		}
	}
}

func v(m mode.Name, tune mode.Tunes) sample.Variant { return sample.Variant{Mode: m, Tune: tune} }
