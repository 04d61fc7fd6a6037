package truth

import (
	"context"
	"time"
)

type check struct {
	name string
	make func(*trial, context.Context) ([]table, error)
}

var checks = []check{
	{"aa", (*trial).identical},
	{"planted", (*trial).planted},
	{"length", (*trial).length},
	{"order", (*trial).order},
	{"company", (*trial).company},
	{"sustained", (*trial).sustained},
	{"minute", (*trial).oneMinute},
	{"peers", (*trial).peers},
	{"unpinned", (*trial).unpinned},
	{"rootless", (*trial).rootless},
	{"precision", (*trial).precision},
	{"trace", (*trial).parts},
	{"trace-followed", (*trial).followed},
	{"trace-planted", (*trial).plantedParts},
	{"trace-routes", (*trial).routes},
	{"trace-served", (*trial).served},
	{"trace-bystanders", (*trial).bystanders},
	{"tokens", (*trial).tokens},
	{"tokens-load", (*trial).loadedTokens},
	{"tokens-cost", (*trial).watchedTokens},
}

func names() (out []string) {
	for _, c := range checks {
		out = append(out, c.name)
	}
	return out
}

type scale struct {
	name string
	aa   runs // in each situation
	// For each planted difference: the runs that must find it, one to choose its size, and the long
	// one that measures it.
	plant            runs
	pilot, reference time.Duration
	// Turns through the settings whose ratios must agree.
	length, order, company, sustained runs
	peers                             runs // blocks, also of unpinned
	minute                            runs // blocks of the comparison of intervals
	pairs                             int  // of each other tool in such a block
	long, short                       runs // of precision
	// how many of each of these run while other programs work
	loaded int
	// Runs of toll trace, and of each planted difference, which traceReference sizes.
	trace, tracePlant              runs
	follow, traceReference, beside time.Duration
	served                         runs // pairs with and without toll trace --attach
	tokens                         int  // responses, an even number
	instants                       int  // responses whose tokens' instants are compared
	sessions                       int  // at once
	watched                        int  // pairs of runs with and without watching
}

type runs struct {
	n    int
	each time.Duration
}

const (
	second = time.Second
	minute = time.Minute
)

// The usual scale takes some 110 minutes. runsOf, if not 0, replaces the number of runs of aa,
// minute, trace and each planted difference.
func scaleOf(quick, full bool, runsOf int) scale {
	s := scale{name: "usual",
		aa:        runs{20, 10 * second},
		plant:     runs{3, 30 * second},
		pilot:     10 * second,
		reference: 90 * second,
		length:    runs{2, 10 * second},
		order:     runs{1, 20 * second},
		company:   runs{2, 20 * second},
		sustained: runs{2, 40 * second},
		minute:    runs{1, minute}, pairs: 15,
		peers: runs{6, 8 * second}, long: runs{2, minute}, short: runs{3, 10 * second},
		loaded: 1,
		trace:  runs{6, 30 * second}, tracePlant: runs{2, 30 * second},
		follow: 40 * second, traceReference: 90 * second, beside: 10 * second,
		served: runs{10, 5 * second}, tokens: 12,
		instants: 150, sessions: 1000, watched: 20}
	switch {
	case quick:
		s = scale{name: "quick",
			aa:        runs{1, 8 * second},
			plant:     runs{1, 8 * second},
			pilot:     6 * second,
			reference: 10 * second,
			length:    runs{1, 5 * second},
			order:     runs{1, 5 * second},
			company:   runs{1, 5 * second},
			sustained: runs{1, 8 * second},
			minute:    runs{1, 10 * second}, pairs: 3,
			peers: runs{2, 8 * second}, long: runs{1, 20 * second}, short: runs{1, 10 * second},
			loaded: 1,
			trace:  runs{3, 12 * second}, tracePlant: runs{1, 12 * second},
			follow: 30 * second, traceReference: 12 * second, beside: 2 * second,
			served: runs{6, 2 * second}, tokens: 6,
			instants: 10, sessions: 50, watched: 2}
	case full:
		s = scale{name: "full",
			aa:        runs{50, 20 * second},
			plant:     runs{20, 30 * second},
			pilot:     20 * second,
			reference: 10 * minute,
			length:    runs{4, 20 * second},
			order:     runs{4, 20 * second},
			company:   runs{4, 30 * second},
			sustained: runs{10, minute},
			minute:    runs{10, minute}, pairs: 15,
			peers: runs{20, 8 * second}, long: runs{5, minute}, short: runs{5, 10 * second},
			loaded: 2,
			trace:  runs{120, 30 * second}, tracePlant: runs{5, minute},
			follow: minute, traceReference: 10 * minute, beside: minute,
			served: runs{30, 10 * second}, tokens: 100,
			instants: 500, sessions: 1000, watched: 20}
	}
	if runsOf > 0 {
		s.aa.n, s.plant.n, s.trace.n, s.tracePlant.n = runsOf, runsOf, runsOf, runsOf
		s.minute.n = runsOf
	}
	return s
}
