package pathtest

import (
	"bytes"
	"encoding/json"
	"os"
)

// Visit is a visit as a results file records it.
type Visit struct {
	Pair    [2]int // nodes of a mesh
	Failure string
}

// Visits returns the visits that a results file has so far.
func Visits(file string) (visits []Visit) {
	b, _ := os.ReadFile(file) // missing at first
	for line := range bytes.Lines(b) {
		var record struct{ Visit *Visit }
		if json.Unmarshal(line, &record) == nil && record.Visit != nil {
			visits = append(visits, *record.Visit)
		}
	}
	return visits
}
