package cli

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// What toll started is not counted as another program's, while it runs and after it has ended.
func TestOwnCPU(t *testing.T) {
	if meter.FamilyCPU(os.Getpid()) == 0 {
		t.Skip("the kernel does not list children (CONFIG_PROC_CHILDREN)")
	}
	const some = 0.2 // s
	before := ownCPU()
	cmd := exec.Command("sh", "-c", "while kill -0 $PPID; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	of := func() float64 { return meter.ProcessCPU(cmd.Process.Pid).Seconds() }
	testwait.Until(t, time.Minute, "the child has used CPU time", func() bool { return of() > some })
	used := of()
	if own := ownCPU() - before; own < used {
		t.Errorf("toll used %.2f s, of which its child used %.2f", own, used)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	const ticks = 0.02 // s; the time of ended children is rounded
	if own := ownCPU() - before; own < used-ticks {
		t.Errorf("toll used %.2f s, of which its ended child used %.2f", own, used)
	}
}

// The machine of a client is watched, that of a client elsewhere is not.
func TestBeforeRequests(t *testing.T) {
	was := contentionSince
	t.Cleanup(func() { contentionSince = was })
	contentionSince = func(func() float64) func() sample.Contention {
		return func() sample.Contention {
			return sample.Contention{Elapsed: 1, CPUs: 2, Others: new(1.9)}
		}
	}
	for word, watched := range map[string]bool{"host": true, "remote": false} {
		p, err := mode.OfServers.Parse(word)
		if err != nil {
			t.Fatal(err)
		}
		before, err := beforeRequests(t.Context(), places{from: []*vantage.Vantage{vantage.New(p)}})
		if err != nil {
			t.Fatal(err)
		}
		if (before != nil) != watched {
			t.Fatalf("%s: watched: %t", word, before != nil)
		}
		if before == nil {
			continue
		}
		if c, err := before(t.Context()); err != nil || !c.TooBusy() {
			t.Errorf("%+v, %v", c, err)
		}
	}
}
