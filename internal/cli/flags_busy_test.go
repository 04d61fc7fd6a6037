package cli

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
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
