package analysis_test

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// The text names the relays that the run had, and no others.
func TestPinnedNamesRelays(t *testing.T) {
	for hops, want := range map[string]string{
		"bridge veth": "One CPU: client and server on CPU 0, as on a busy " +
			"machine.",
		"lo proxy bridge veth": "One CPU: client, server and docker-proxy on CPU " +
			"0, as on a busy machine.",
		"lo pasta lo": "One CPU: client, server and pasta on CPU 0, as on " +
			"a busy machine.",
		"lo rootlesskit lo proxy veth": "One CPU: client, server, rootlesskit and " +
			"docker-proxy on CPU 0, as on a busy machine.",
	} {
		r := &analysis.Report{}
		r.Plan.Pins = []sample.Pinning{{Name: sample.PinNear,
			CPUs: sample.CPUs{Client: []int{0}, Server: []int{0}}}}
		r.Plan.Pin = sample.PinNear
		r.Cells = []analysis.Cell{{Hops: []string{"lo"}}, {Hops: strings.Fields(hops)}}
		if got := r.Pinned(); got != want {
			t.Errorf("%s: %q", hops, got)
		}
	}
}
