package sample

import (
	"fmt"
	"math"
	"slices"
)

// Sweep is the option of a run's loads that has several values, and these.
type Sweep struct {
	Axis   string  `json:"axis"`           // the option, as the command line has it: "request"
	Unit   string  `json:"unit,omitempty"` // of the values: "B", "bit/s", "1/s"; "": they are counts
	Points []Point `json:"points"`         // from the least value on; one Load each of Plan.Loads for each kind
}

// Point is a value of a sweep's option.
type Point struct {
	Name  string  `json:"point"` // as cells and loads have it, and as it is printed: "1k"
	Value float64 `json:"value"`
}

// Bounds of the points of a sweep: with one there is nothing to compare.
const (
	LeastPoints = 2
	MostPoints  = 32
)

// checkSweep refuses a sweep that the reader would not bear.
func (p Plan) checkSweep() error {
	if p.Sweep == nil {
		if p.Study == StudySweep {
			return fmt.Errorf("a sweep without points")
		}
		return nil
	}
	points := p.Sweep.Points
	if n := len(points); n < LeastPoints || n > MostPoints {
		return fmt.Errorf("a sweep of %d points", n)
	}
	for i, x := range points {
		if x.Name == "" || math.IsNaN(x.Value) || math.IsInf(x.Value, 0) || i > 0 && !(x.Value > points[i-1].Value) ||
			slices.ContainsFunc(points[:i], func(o Point) bool { return o.Name == x.Name }) {
			return fmt.Errorf("impossible point %q of a sweep", x.Name)
		}
	}
	for _, c := range p.Cells {
		if !slices.ContainsFunc(points, func(o Point) bool { return o.Name == c.Point }) {
			return fmt.Errorf("a cell at %q, which is not a point of the sweep", c.Point)
		}
	}
	return nil
}

// CurveRisk is how likely something wrong is said of a whole curve, at most; its points share
// it.
const CurveRisk = 0.05
