package engine

import (
	"errors"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestPunctual(t *testing.T) {
	for _, tt := range []struct {
		planned, window float64
		ok              bool
	}{
		{0.25, 0.25, true}, {0.25, 0.31, true}, {0.25, 0.42, false}, {0.25, 0.15, false},
		{0.05, 0.07, true}, {0.05, 0.09, false}, {2, 2.4, true}, {2, 2.6, false},
	} {
		err := punctual(tt.planned, sample.Party{Window: tt.planned},
			sample.Party{Window: tt.window})
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, errStarved) {
			t.Errorf("%v s instead of %v s: %v", tt.window, tt.planned, err)
		}
	}
}
