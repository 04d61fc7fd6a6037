package cluster

import (
	"context"
	"errors"
	"testing"
)

func TestOnce(t *testing.T) {
	var (
		o      Once[int]
		begun  int
		ended  []int
		broken = errors.New("broken")
	)
	begin := func(ctx context.Context) (int, error) {
		begun++
		return begun, context.Cause(ctx)
	}
	fails := func(context.Context) (int, error) {
		begun++
		return 0, broken
	}
	end := func(n int) error {
		ended = append(ended, n)
		return nil
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Start(over, begin); !errors.Is(err, context.Canceled) {
		t.Errorf("its context had ended: %v", err)
	}
	for range 2 {
		if n, err := o.Start(t.Context(), begin); n != 2 || err != nil {
			t.Errorf("it started %d, %v", n, err)
		}
	}
	if n, err := o.Start(over, begin); n != 2 || err != nil {
		t.Errorf("it is there already: %d, %v", n, err)
	}
	for range 2 {
		if err := o.Close(end); err != nil || len(ended) != 1 || ended[0] != 2 {
			t.Errorf("it ended %v, %v", ended, err)
		}
	}
	for range 2 {
		if _, err := o.Start(t.Context(), fails); !errors.Is(err, broken) || begun != 3 {
			t.Errorf("it began %d times: %v", begun, err)
		}
	}
	if err := o.Close(end); err != nil || len(ended) != 1 {
		t.Errorf("nothing had started, it ended %v, %v", ended, err)
	}
	// A started value must be ended even if the caller no longer waits.
	if n, err := o.Start(over, func(context.Context) (int, error) {
		return 9, nil
	}); n != 9 || err != nil {
		t.Errorf("it started %d, %v", n, err)
	}
	if err := o.Close(end); err != nil || len(ended) != 2 || ended[1] != 9 {
		t.Errorf("it ended %v, %v", ended, err)
	}
}
