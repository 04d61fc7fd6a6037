package meter

import (
	"os"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// A CPU that went offline must not shift the others.
func TestSincePairsByNumber(t *testing.T) {
	before := Reading{CPUs: []sample.CPU{{ID: 0, User: 1, Idle: 10}, {ID: 1, User: 2},
		{ID: 2, System: 3, Steal: 1, IOWait: 2, Nice: 1, Guest: 5}}}
	after := Reading{CPUs: []sample.CPU{{ID: 0, User: 1.5, Idle: 11},
		{ID: 2, System: 4, Steal: 1.25, IOWait: 2.5, Nice: 1.25, Guest: 5}, {ID: 3, User: 9}}}
	got := Since(before, after)
	want := []sample.CPU{{ID: 0, User: 0.5, Idle: 1},
		{ID: 2, System: 1, Steal: 0.25, IOWait: 0.5, Nice: 0.25}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func TestReadSeesThisProcess(t *testing.T) {
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	const gone = 1<<22 + 1 // above the largest pid_max
	first, err := m.Read(os.Getpid(), gone)
	if err != nil {
		t.Fatal(err)
	}
	for sum, i := 0, 0; i < 50_000_000; i++ {
		sum += i
		_ = sum
	}
	last, err := m.Read(os.Getpid(), gone)
	if err != nil {
		t.Fatal(err)
	}
	if len(last.CPUs) == 0 || len(last.Procs) != 2 || !last.At.After(first.At) {
		t.Fatalf("reading %+v", last)
	}
	if last.Procs[0] <= first.Procs[0] {
		t.Errorf("this process's CPU time went from %v to %v", first.Procs[0], last.Procs[0])
	}
	if last.Procs[1] != 0 {
		t.Errorf("a process that is not there used %v s", last.Procs[1])
	}
}
