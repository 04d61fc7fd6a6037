package main

import (
	"context"
	"fmt"
	"time"
)

// silentStop is how long a run may take to end after a signal without a word.
const silentStop = 300 * time.Millisecond

// sayStopping says what a run is waiting for that a signal did not end at once: an
// engine takes its time to remove containers. Done ends that.
func (p *progress) sayStopping(ctx context.Context) (done func()) {
	if p.w == nil {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		select {
		case <-ended:
		case <-time.After(silentStop):
			fmt.Fprintf(p.w, "%sstopping: removing what was built\n", clearLine)
		}
	}()
	return func() { close(ended) }
}
