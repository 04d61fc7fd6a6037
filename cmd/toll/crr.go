package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// crrLoad's warm-up is that of caches and of the neighbour tables: each
// connection starts anew. A connection takes two round trips.
func crrLoad(f *loadFlags, w sample.Wire) sample.Load {
	return sample.Load{Warmup: 0.05 + 2*settled*w.RoundTrip(), Streams: f.options.connections, Request: f.request, Reply: f.reply}
}

// only refuses loads of which a command makes nothing.
func only(r plan.Request, command string, loads ...string) error {
	for _, l := range r.Loads {
		if !slices.Contains(loads, l.Kind) {
			return usage(fmt.Errorf("toll %s has no load %s", command, l.Kind),
				fmt.Sprintf("toll compare --load %s, or toll %s --load %s", l.Kind, command, strings.Join(loads, ",")))
		}
	}
	return nil
}
