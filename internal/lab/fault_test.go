package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/pathtest"
)

var errInjected = errors.New("injected fault")

// A build that fails at any of its steps says so and leaves nothing. Each
// mode is built from the placement that takes it the most steps.
func TestFaultAtEachStep(t *testing.T) {
	started(t, &Lab{})
	for _, m := range mode.Catalogue {
		r := m.Routes[len(m.Routes)-1]
		t.Run(string(m.Name), func(t *testing.T) {
			steps, failAt := 0, -1
			l := started(t, &Lab{})
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			if err := l.Check(context.Background(), spec); err != nil {
				var u *path.UnsupportedError
				if errors.As(err, &u) && kernelLacks(u) {
					t.Skipf("rightly refused: %v", err)
				}
				pathtest.SkipOrFail(t, "%s: %v", spec, err)
			}
			l.test.before = func() error {
				steps++
				if steps == failAt {
					return fmt.Errorf("step %d: %w", steps, errInjected)
				}
				return nil
			}
			before := pathtest.Observe(t)
			p, err := l.Build(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			const fewest = 5
			last := steps
			if last < fewest {
				t.Fatalf("the build has only %d steps", last)
			}
			for failAt = 1; failAt <= last; failAt++ {
				steps = 0
				p, err := l.Build(context.Background(), spec)
				if err == nil {
					_ = p.Close()
					t.Fatalf("a fault at step %d of %d did not fail the build", failAt, last)
				}
				if !errors.Is(err, errInjected) || !strings.Contains(err.Error(), string(m.Name)) {
					t.Fatalf("fault at step %d of %d: %v", failAt, last, err)
				}
			}
			pathtest.NothingLeft(t, before)
		})
	}
}
