package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

// holder's bridge paths need a setting of the whole machine.
type holder struct {
	*fake.Builder
	hold func() (func() error, error)
}

func (h holder) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	p, err := h.Builder.Build(ctx, s)
	if err == nil && s.Mode == mode.Bridge {
		p.Hold = h.hold
	}
	return p, err
}

func TestHeldSettings(t *testing.T) {
	for _, c := range []struct {
		name         string
		set, restore error
	}{{"works", nil, nil}, {"cannot-be-set", errors.New("no right"), nil},
		{"stays", nil, errors.New("stuck")}} {
		t.Run(c.name, func(t *testing.T) {
			set, now := 0, 0
			b := &fake.Builder{Rate: rate(1000)}
			req := crr(2)
			req.Modes = []mode.Name{mode.Bridge}
			r := try(t, context.Background(), b, req, func(e *engine.Config) {
				e.Builders = []path.Builder{holder{b, func() (func() error, error) {
					if c.set != nil {
						return nil, c.set
					}
					if set, now = set+1, now+1; now > 1 {
						t.Error("it is set twice")
					}
					return func() error { now--; return c.restore }, nil
				}}}
			})
			visits := 0
			for _, v := range r.file.Visits {
				bridge := r.file.Header.Plan.Cells[v.Cell].Mode == mode.Bridge
				if bridge {
					visits++
				}
				if failed := v.Failure != ""; failed != (bridge &&
					(c.set != nil || c.restore != nil)) {
					t.Errorf("%s: failure %q", r.file.Header.Plan.Cells[v.Cell].Mode, v.Failure)
				}
			}
			if visits == 0 || now != 0 || c.set == nil && set != visits {
				t.Errorf("%d visits, set %d times, still set %d", visits, set, now)
			}
		})
	}
}
