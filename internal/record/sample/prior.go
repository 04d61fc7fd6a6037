package sample

import (
	"fmt"
	"slices"
)

// Prior is how much the epochs of one group and metric varied in earlier runs on the machine,
// beyond what their slices explain. It is recorded in the file so that every machine judges the
// file alike.
type Prior struct {
	From   string `json:"from"`
	Load   string `json:"load"`
	Point  string `json:"point,omitempty"`
	On     string `json:"on"`
	Pin    string `json:"pin,omitempty"`
	Metric string `json:"metric"`
	// Variance is the variance of the logarithms of the epochs' ratios, with Freedom degrees of
	// freedom.
	Variance float64 `json:"variance"`
	Freedom  float64 `json:"freedom"`
}

const (
	maxVariance = 100
	maxFreedom  = 10_000
	maxPriors   = 10_000
)

func (p Plan) checkPriors() error {
	all := slices.Concat(p.Priors, p.Repeats)
	if n := len(all); n > maxPriors {
		return fmt.Errorf("%d priors, at most %d are read", n, maxPriors)
	}
	for _, x := range all {
		if !(x.Variance >= 0 && x.Variance <= maxVariance) ||
			!(x.Freedom > 0 && x.Freedom <= maxFreedom) {
			return fmt.Errorf("impossible prior of %s: variance %v, %v degrees of freedom",
				x.Metric, x.Variance, x.Freedom)
		}
	}
	return nil
}
