package swarm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Each node is waited for once, but may have ESP later. A failed request does not prove its
// absence.
func TestNodesWithoutESP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{ctx: context.Background(), run: &run{noESP: map[string]bool{}}}
		var (
			says error
			told time.Time // when it gets ESP; zero: never
		)
		ask := func(node string) (took time.Duration, err error) {
			began := time.Now()
			err = s.encrypts(Node{ID: "id-" + node, Name: node}, func() (sample.Counters, error) {
				if !told.IsZero() && !time.Now().Before(told) {
					return sample.Counters{}, nil
				}
				return sample.Counters{}, says
			})
			return time.Since(began), err
		}
		none := fmt.Errorf("node a: %w: no ESP state from 10.0.0.1 to 10.0.0.2", agent.ErrNone)
		var u *machine.UnsupportedError

		says = none
		if took, err := ask("a"); !errors.As(err, &u) || took < time.Second {
			t.Errorf("a lacks it: %v after %s, want to be told so after a while", err, took)
		}
		if took, err := ask("a"); !errors.As(err, &u) || took > 0 {
			t.Errorf("a lacks it, again: %v after %s, want to be told so at once", err, took)
		}
		says = nil
		if _, err := ask("b"); err != nil {
			t.Errorf("b has it: %v", err)
		}
		if _, err := ask("a"); err != nil {
			t.Errorf("a has it by now: %v", err)
		}

		busy := errors.New("node a: it gave no counter within 5s")
		says = busy
		if _, err := ask("a"); !errors.Is(err, busy) || errors.As(err, &u) {
			t.Errorf("a does not answer: %v", err)
		}
		says = none
		told = time.Now().Add(time.Second)
		if took, err := ask("a"); err != nil || took < time.Second {
			t.Errorf("a is told a second later: %v after %s", err, took)
		}
	})
}
