package gpu

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const uuid = "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"

// program puts a shell script called nvidia-smi in PATH.
func program(t testing.TB, script string) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, smi)
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// apps answers the query for processes.
func apps(lines string) string {
	return "case $1 in --query-compute-apps=*) printf '" + lines + "'; exit;; esac\n"
}

func own() string { return fmt.Sprintf("%d, %s\\n", os.Getpid(), uuid) }

const loop = `while :; do echo "$(date '+%Y/%m/%d %H:%M:%S.%3N'), ` + uuid +
	`, 97"; sleep 0.1; done`

func TestNVIDIA(t *testing.T) {
	program(t, apps("1, GPU-other\\n"+own())+loop)
	m := Open(t.Context(), os.Getpid())
	if m == nil {
		t.Fatal("nvidia-smi is not read")
	}
	defer m.Close()
	m.Begin()
	began := time.Now()
	readings := func() int {
		m.nvidia.mu.Lock()
		defer m.nvidia.mu.Unlock()
		return len(m.nvidia.read)
	}
	const enough = 15
	testwait.Until(t, time.Minute, "there are readings", func() bool { return readings() >= enough })
	all := Span{began, time.Now()}
	g := m.End([]Span{all}, []Span{all})
	if g == nil || g.By != sample.GPUByNvidiaSMI || g.Device != uuid || g.Slow.Gaps != 1 ||
		math.Abs(g.Slow.Share()-0.97) > 1e-9 {
		t.Errorf("%+v", g)
	}
}

func TestNVIDIAShares(t *testing.T) {
	n := &nvidia{gpus: []string{uuid}}
	n.begin()
	began := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	const format = "2006/01/02 15:04:05.000"
	for ms := 100; ms <= 6000; ms += 100 {
		percent := 96
		if ms > 3000 { // a second after the slow gap's begin it tells of nothing else
			percent = 4
		}
		n.note(fmt.Sprintf("%s, %s, %d", at(ms).Format(format), uuid, percent))
		n.note(fmt.Sprintf("%s, GPU-of-others, 50", at(ms).Format(format)))
	}
	for _, line := range []string{"", "x", at(4500).Format(format) + ", " + uuid + ", [N/A]",
		at(4500).Format(format) + ", " + uuid + ", NaN",
		at(4500).Format(format) + ", " + uuid + ", 250", "yesterday, " + uuid + ", 50",
		"Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error"} {
		n.note(line)
	}
	g := n.end([]Span{{at(0), at(6000)}}, []Span{{at(2500), at(2600)}, {at(3000), at(6000)}})
	if g == nil || g.Slow.Gaps != 1 || g.Slow.Time != 3 || math.Abs(g.Slow.Share()-0.04) > 1e-9 {
		t.Fatalf("%+v", g)
	}
	if math.Abs(g.Rest.Share()-0.96) > 1e-9 || math.Abs(g.Rest.Time-2.9) > 1e-9 {
		t.Errorf("the rest: %+v", g.Rest)
	}
}

func TestNVIDIAOfNothing(t *testing.T) {
	for name, script := range map[string]string{
		"no driver": "echo 'NVIDIA-SMI has failed because it could not communicate with the " +
			"NVIDIA driver.'; exit 9",
		"no process": apps("") + loop,
		"others":     apps("1, "+uuid+"\\n") + loop,
		"no PIDs":    apps("[Not Supported], [Not Supported]\\n") + loop,
		"rubbish":    "head -c 100000 /dev/urandom",
		"endless":    "cat /dev/zero",
	} {
		t.Run(name, func(t *testing.T) {
			program(t, script)
			if m := Open(t.Context(), os.Getpid()); m != nil {
				m.Close()
				t.Error("a GPU is read")
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if m := Open(t.Context(), os.Getpid()); m != nil {
			t.Error("a GPU is read")
		}
	})
}

// TestNVIDIAThatMisbehaves has programs that name the process, but then no utilization.
func TestNVIDIAThatMisbehaves(t *testing.T) {
	for name, script := range map[string]string{
		"hangs":    "sleep 1000",
		"ends":     "exit 1",
		"rubbish":  "head -c 100000 /dev/urandom",
		"one line": "tr '\\0' x </dev/zero",
		"N/A":      strings.Replace(loop, "97", "[N/A]", 1),
	} {
		t.Run(name, func(t *testing.T) {
			program(t, apps(own())+script)
			m := Open(t.Context(), os.Getpid())
			if m == nil {
				t.Fatal("the process is not found")
			}
			m.Begin()
			now := time.Now()
			hour := []Span{{now.Add(-time.Hour), now}}
			if g := m.End(hour, hour); g != nil {
				t.Errorf("%+v", g)
			}
			m.Close()
			testwait.Until(t, time.Minute, "the program has ended", func() bool {
				select {
				case <-m.nvidia.ended:
					return true
				default:
					return false
				}
			})
		})
	}
}

func TestNVIDIAThatDoesNotAnswer(t *testing.T) {
	program(t, "sleep 1000")
	began := time.Now()
	if n := openNVIDIA(t.Context(), os.Getpid(), 100*time.Millisecond); n != nil {
		t.Error("a GPU is read")
	}
	if time.Since(began) > time.Minute {
		t.Error("it was waited for")
	}
}
