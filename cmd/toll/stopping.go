package main

import (
	"context"
	"fmt"
	"time"
)

// silentStop is how long a stopped run may take to end before it prints a message.
const silentStop = 300 * time.Millisecond

// sayStopping prints what a run is waiting for if it does not end soon after a signal: an engine
// needs time to remove containers. The caller calls done when the run has ended.
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
