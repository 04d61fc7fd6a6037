package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

// The smallest run has no slices, because the first visit of an epoch is written when the slices of
// all its cells have ended.
var compareArgs = []string{"compare", "host", "--from", "host", "--load", rr, "--rounds", "1",
	"--slice", "0", "--quiet"}

// visitStart measures from toll's start to the first visit in its results file, minus that visit's
// warm-up and window: an upper bound, because it includes the work after the window.
func (b *bench) visitStart(ctx context.Context) (v visit, err error) {
	dir, err := os.MkdirTemp("", start)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "results")
	cmd := exec.CommandContext(ctx, b.toll, append(slices.Clone(compareArgs), "--save", file)...)
	cmd.Env = append(os.Environ(), "TOLL_HISTORY=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it has to clean up
	cmd.WaitDelay = exitTimeout
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return v, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	first, err := firstVisit(file, ended)
	if err != nil {
		return v, fmt.Errorf("%s: %w: %s", cmd, err, text.String())
	}
	phases, err := firstPhases(file)
	if err != nil {
		return v, fmt.Errorf("%s: %w", cmd, err)
	}
	v.started, err = peer.Positive("toll's start", (first.Sub(began) - phases).Seconds())
	return v, err
}

// firstVisit returns when the first visit appeared in file. It waits until the program exits.
func firstVisit(file string, ended <-chan error) (first time.Time, err error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var size int64
	for {
		select {
		case err := <-ended:
			if err == nil && first.IsZero() && !hasVisit(file) {
				err = errors.New("there is no visit in its results")
			}
			if first.IsZero() {
				first = time.Now()
			}
			return first, err
		case <-tick.C:
		}
		if st, err := os.Stat(file); err == nil && first.IsZero() && st.Size() != size {
			size = st.Size()
			if hasVisit(file) {
				first = time.Now()
			}
		}
	}
}

func hasVisit(file string) bool {
	b, err := os.ReadFile(file)
	return err == nil && bytes.Contains(b, []byte(`{"visit":`))
}

// firstPhases returns warm-up plus window, or an error for a load in slices.
func firstPhases(file string) (_ time.Duration, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := sample.Read(f)
	if err != nil {
		return 0, err
	}
	if len(r.Visits) == 0 {
		return 0, errors.New("there is no visit in its results")
	}
	v := r.Visits[0]
	if v.Failure != "" {
		return 0, errors.New(v.Failure)
	}
	l := r.Header.Plan.Loads.Of(r.Header.Plan.Cells[v.Cell].Load)
	if l.Slice > 0 {
		return 0,
			errors.New("its first visit is of an epoch, which takes longer than warm-up and window")
	}
	return time.Duration((l.Warmup + l.Window) * float64(time.Second)), nil
}
