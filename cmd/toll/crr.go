package main

import "github.com/bridgetoll/bridgetoll/internal/sample"

// crrLoad's warm-up is that of caches and of the neighbour tables: each
// connection starts anew. A connection takes two round trips.
func crrLoad(f *loadFlags, w sample.Wire) sample.Load {
	return sample.Load{Warmup: 0.05 + 2*settled*w.RoundTrip(), Streams: f.options.connections, Request: f.request, Reply: f.reply}
}
