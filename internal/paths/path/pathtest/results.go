package pathtest

import (
	"bytes"
	"encoding/json"
	"os"
)

// Visit is what a results file contains of a visit.
type Visit struct {
	Pair    [2]int // of a mesh: its nodes
	Failure string
}

// Visits returns the visits that a run has written to its results file so far.
func Visits(file string) (visits []Visit) {
	b, _ := os.ReadFile(file) // the file does not exist at first
	for line := range bytes.Lines(b) {
		var record struct{ Visit *Visit }
		if json.Unmarshal(line, &record) == nil && record.Visit != nil {
			visits = append(visits, *record.Visit)
		}
	}
	return visits
}
