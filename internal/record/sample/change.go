package sample

import "fmt"

// Difference is a changed setting of a path.
type Difference struct {
	Where string `json:"where"` // "machine A"
	What  string `json:"what"`  // "MTU of veth-server"
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"` // empty: absent
}

// ChangeLeft is the What of a change that is reported because an end of a path, such as a pod, has
// gone. Was and Is contain the reason.
const ChangeLeft = "an end"

// Change is a difference found during a run. Its cells have no result, because it may affect all
// measurements between the two readings.
type Change struct {
	Difference
	Cells []int   `json:"cells"`   // indexes into Plan.Cells
	Round int     `json:"round"`   // the first that may be affected
	Right float64 `json:"right_s"` // time of the last unchanged reading, since the run's start
	Seen  float64 `json:"seen_s"`
}

const maxChanges = 100_000

func (f *File) addChange(c Change) error {
	if len(f.Changes) >= maxChanges {
		return fmt.Errorf("more than %d changes", maxChanges)
	}
	if n := len(f.Header.Plan.Cells); len(c.Cells) > n {
		return fmt.Errorf("a change of %d cells: the plan has only %d", len(c.Cells), n)
	}
	for _, i := range c.Cells {
		if n := len(f.Header.Plan.Cells); i < 0 || i >= n {
			return fmt.Errorf("cell %d is not in the plan, which has %d cells", i, n)
		}
	}
	if c.Round < 0 || c.Round > maxVisits {
		return fmt.Errorf("impossible round %d", c.Round)
	}
	if err := times(c.Right, c.Seen); err != nil {
		return err
	}
	f.Changes = append(f.Changes, c)
	return nil
}
