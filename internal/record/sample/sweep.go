package sample

import (
	"fmt"
	"math"
	"slices"
)

// Sweep is the option of a run's loads that has several values.
type Sweep struct {
	Axis string `json:"axis"`           // the option, such as "request"
	Unit string `json:"unit,omitempty"` // "B", "bit/s", "1/s"; "": counts
	// ascending; Plan.Loads has one Load for each point and kind
	Points []Point `json:"points"`
}

// Point is a value of a sweep's option.
type Point struct {
	Name  string  `json:"point"` // "1k"
	Value float64 `json:"value"`
}

const (
	LeastPoints = 2
	MostPoints  = 32
)

func (p Plan) checkSweep() error {
	if p.Sweep == nil {
		if p.Study == StudySweep {
			return fmt.Errorf("a sweep without points")
		}
		return nil
	}
	points := p.Sweep.Points
	if n := len(points); n < LeastPoints || n > MostPoints {
		return fmt.Errorf("impossible sweep of %d points", n)
	}
	for i, x := range points {
		if x.Name == "" || math.IsNaN(x.Value) || math.IsInf(x.Value, 0) ||
			i > 0 && !(x.Value > points[i-1].Value) ||
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

// CurveRisk bounds the probability of a wrong statement about a whole curve.
const CurveRisk = 0.05
