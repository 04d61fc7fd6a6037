package pathtest

import (
	"bytes"
	"encoding/json"
	"os"
)

// Visit has a results file's content about a visit.
type Visit struct {
	Pair    [2]int // nodes of a mesh
	Failure string
}

// Visits returns the visits so far of a results file.
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
