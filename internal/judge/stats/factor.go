package stats

import "math"

// Window holds what two clocks counted in a window: All counts everything, Part a part.
type Window struct{ All, Part float64 }

// Factor returns the sum of All over the sum of Part, or NaN or infinity if Part is 0.
func Factor(ws []Window) float64 {
	var all, part float64
	for _, w := range ws {
		all, part = all+w.All, part+w.Part
	}
	return all / part
}

// minWindows is the least number of windows for each factor. An interval from fewer would be
// useless.
const minWindows = 3

// LogFactor returns the logarithm of the windows' Factor, with its error; Pairs is 0 if there are
// too few windows.
func LogFactor(ws []Window) Estimate {
	exact := make([]Window, len(ws))
	for k := range exact {
		exact[k] = Window{1, 1}
	}
	return Factors(ws, exact)
}

// By returns the interval, at the given level, of the product of the summary's value, which
// includes the factor already, and an independent factor whose logarithm is e. The half-widths of
// the logarithms add as squares (Zou & Donner, Construction of confidence limits about effect
// measures, 2008).
func (s Summary) By(e Estimate, level float64) Summary {
	if !(e.Error > 0) || !(s.Low > 0) {
		return s
	}
	half := Student((1+level)/2, e.Freedom) * e.Error
	s.Low = s.Median * exp(-math.Hypot(math.Log(s.Median/s.Low), half))
	s.High = s.Median * exp(math.Hypot(math.Log(s.High/s.Median), half))
	return s
}

// Factors returns the logarithm of the ratio of mine's Factor to that of its; both have windows of
// the same rounds, in the same order. The standard error is by the delta method (Cochran, Sampling
// Techniques, 1977, chapter 6). Other work of the machine is in both windows of a round, and is not
// part of the error. Pairs is 0 if there are too few windows.
func Factors(mine, its []Window) Estimate {
	f, g := Factor(mine), Factor(its)
	n := float64(len(mine))
	e := Estimate{Centre: math.Log(f / g), Freedom: n - 1, Pairs: len(mine), Epochs: len(mine)}
	if len(mine) < minWindows || math.IsNaN(e.Centre) || math.IsInf(e.Centre, 0) {
		return Estimate{}
	}
	var a, b float64
	for k := range mine {
		a, b = a+mine[k].All/n, b+its[k].All/n
	}
	squares := 0.0
	for k := range mine {
		off := (mine[k].All-f*mine[k].Part)/a - (its[k].All-g*its[k].Part)/b
		squares += off * off
	}
	e.Error = math.Sqrt(squares / (n - 1) / n)
	return e
}
