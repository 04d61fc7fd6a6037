package plan

import (
	"errors"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestClimb(t *testing.T) {
	host := []mode.Placement{mode.FromHost}
	r, err := Climb(Request{Modes: []mode.Name{mode.PublishNAT}, From: host}, false)
	want := []mode.Name{mode.PublishNAT, mode.Native, mode.Host, mode.BridgeDefault, mode.Bridge}
	if err != nil || !slices.Equal(r.Modes, want) || r.Baseline != mode.Native ||
		r.Study != sample.StudyLadder || len(r.To) != len(want) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, tt := range []struct {
		name string
		Request
		err, hint string
	}{
		{"two placements", Request{From: []mode.Placement{mode.FromHost, mode.FromContainer}},
			"toll ladder takes one --from, not 2", "one run for each: --from host"},
		{"an inward target", Request{From: host, To: []mode.Target{mode.ToLoopback}},
			"toll ladder chooses the inward targets itself", "leave --to out, or --to outside"},
		{"the bottom", Request{From: host, Modes: []mode.Name{mode.Native}},
			"native is the bottom of the ladder from host: it has no part to price",
			"toll ladder --from host"},
	} {
		_, err := Climb(tt.Request, false)
		var refused *refusal
		if !errors.As(err, &refused) || err.Error() != tt.err || refused.hint != tt.hint {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
