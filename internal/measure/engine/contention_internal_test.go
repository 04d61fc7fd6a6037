package engine

import (
	"math"
	"os"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
)

func TestSpentOfUnknownProcesses(t *testing.T) {
	const gone = 1<<22 + 1 // above the largest pid_max
	here := os.Getpid()
	if x := spent([]int{here}, meter.ProcessCPU); !(x > 0) {
		t.Errorf("this process used %v s", x)
	}
	for _, pid := range []int{0, gone} {
		if x := spent([]int{here, pid}, meter.ProcessCPU); !math.IsNaN(x) {
			t.Errorf("process %d used %v s", pid, x)
		}
	}
}
