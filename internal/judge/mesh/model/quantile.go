package model

import "math"

// gauss is the quantile of the standard normal distribution.
func gauss(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// student is the quantile of Student's distribution, by the first terms of its
// expansion about the normal one (Abramowitz & Stegun 26.7.5). With few degrees
// of freedom it is too small far out, so there are none below one.
func student(p, df float64) float64 {
	z := gauss(p)
	df = max(1, df)
	z2 := z * z
	return z + z*(z2+1)/(4*df) + z*((5*z2+16)*z2+3)/(96*df*df) + z*(((3*z2+19)*z2+17)*z2-15)/(384*df*df*df)
}
