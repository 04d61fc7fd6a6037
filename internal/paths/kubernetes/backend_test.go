package kubernetes

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Programs without this package know the modes by the catalogue.
func TestModes(t *testing.T) {
	var known []string
	for _, m := range mode.OfKubernetes() {
		known = append(known, string(m.Name))
	}
	if !slices.Equal(modes(), known) {
		t.Errorf("recipes for %v, the catalogue has %v", modes(), known)
	}
}
