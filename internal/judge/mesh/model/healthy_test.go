package model

import (
	"fmt"
	"slices"
	"testing"
)

func leave(visits []Measurement, node, sweep int) []Measurement {
	return slices.DeleteFunc(visits, func(v Measurement) bool {
		return v.Sweep >= sweep && (v.Pair[0] == node || v.Pair[1] == node)
	})
}

// No fault may be named in 99 of 100 runs, and 95 of 100 intervals must hold the truth, with normal
// noise and heavy tails.
func TestHealthyMesh(t *testing.T) {
	t.Parallel()
	const seeds = 200
	for _, nodes := range []int{2, 3, 4, 6} {
		for _, sweeps := range []int{2, 3, 9} {
			for _, left := range []int{0, 2, 4} {
				if left > 0 && (nodes == 2 || left >= sweeps) {
					continue
				}
				for _, tails := range []bool{false, true} {
					for _, directed := range []bool{false, true} {
						name := fmt.Sprintf(
							"%d nodes, %d sweeps, one leaves after %d, tails %t, directed %t",
							nodes, sweeps, left, tails, directed)
						t.Run(name, func(t *testing.T) {
							blamed := 0
							effects, links, typical := coverage{}, coverage{}, coverage{}
							for seed := range uint64(seeds) {
								c := cluster{nodes: nodes, noise: 0.2, seed: seed}
								if tails {
									c.noise, c.spikes, c.spike = 0.1, 0.1, 0.5
								}
								visits := c.run(sweeps, directed)
								if left > 0 {
									visits = leave(visits, nodes-1, left)
								}
								f := New(nodes, directed, visits)
								if by, _ := Faults(f); len(by[0]) > 0 {
									blamed++
								}
								for _, e := range append(slices.Clone(f.Out), f.In...) {
									if e.Of >= minLinks {
										effects.add(e.Low, 1, e.High)
									}
								}
								for a := range nodes {
									for b := range nodes {
										if _, low, high := f.Link(a, b); a != b {
											links.add(low, 50e-6, high)
										}
									}
								}
								_, low, high := f.Typical()
								typical.add(low, 50e-6, high)
							}
							const most = 6
							if blamed > most {
								t.Errorf("%d of %d healthy runs blame something", blamed, seeds)
							}
							// One-sided tails shift every value that is not relative to others.
							least := 0.91
							if tails {
								least = 0.88
							}
							effects.check(t, "nodes", 0.94)
							links.check(t, "links", least)
							typical.check(t, "what is typical", least)
						})
					}
				}
			}
		}
	}
}

type coverage struct{ in, of int }

func (c *coverage) add(low, truth, high float64) {
	c.of++
	if low <= truth && truth <= high {
		c.in++
	}
}

func (c *coverage) check(t *testing.T, what string, least float64) {
	t.Helper()
	if float64(c.in) < least*float64(c.of) {
		t.Errorf("%d of %d intervals of %s hold the truth", c.in, c.of, what)
	}
}
