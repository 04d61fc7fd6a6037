package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

var errInjected = errors.New("injected fault")

// asOthers are built by the steps of other modes: host, bridge, fast+links, publish-proxy behind the
// RootlessKit of rootless-publish-nat, macvlan-bridge, ipvlan-l2, and both of bothWays.
var asOthers = append([]mode.Name{mode.Native, mode.BridgeDefault, mode.Fast, mode.RootlessPublish,
	mode.MacvlanPrivate, mode.MacvlanVEPA, mode.MacvlanPassthru, mode.IPvlanL3, mode.IPvlanL3S},
	bothWays...)

// Each mode is built from the placement with the most steps.
func TestFaultAtEachStep(t *testing.T) {
	started(t, &Lab{})
	for _, m := range mode.OfLab() {
		if slices.Contains(asOthers, m.Name) {
			continue
		}
		r := pathtest.Longest(m)
		t.Run(string(m.Name), func(t *testing.T) {
			l := started(t, &Lab{})
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			if err := l.Check(context.Background(), spec); err != nil {
				var u *machine.UnsupportedError
				if errors.As(err, &u) && kernelLacks(u) {
					t.Skipf("rightly refused: %v", err)
				}
				pathtest.SkipOrFail(t, "%s: %v", spec, err)
			}
			build := func(failAt int) (steps int, err error) {
				faulty := &Lab{test: hooks{before: func() error {
					steps++
					if steps == failAt {
						return fmt.Errorf("step %d: %w", steps, errInjected)
					}
					return nil
				}}}
				p, err := faulty.Build(context.Background(), spec)
				if err == nil {
					err = p.Close()
				}
				return steps, errors.Join(err, faulty.Close())
			}
			before := pathtest.Observe(t)
			last, err := build(0)
			if err != nil {
				t.Fatal(err)
			}
			const fewest = 5
			if last < fewest {
				t.Fatalf("the build has only %d steps", last)
			}
			// The kernel makes each build wait for its grace periods.
			const atOnce = 4
			var wg sync.WaitGroup
			places := make(chan bool, atOnce)
			for failAt := 1; failAt <= last; failAt++ {
				places <- true
				wg.Go(func() {
					defer func() { <-places }()
					if _, err := build(failAt); !errors.Is(err, errInjected) ||
						!saysOf(m.Name).MatchString(err.Error()) {
						t.Errorf("fault at step %d of %d: %v", failAt, last, err)
					}
				})
			}
			wg.Wait()
			pathtest.NothingLeft(t, before)
		})
	}
}

func saysOf(m mode.Name) *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(string(m)) + `|^(machine [AB]|build the wire): `)
}
