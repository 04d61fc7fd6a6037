package dial

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// A caller waits less for an attempt whose packet a rule dropped, and as long as ever for others.
func TestHasten(t *testing.T) {
	lost, late, through := &attempt{fd: 3}, &attempt{fd: 4}, &attempt{fd: 5, connected: true}
	c := &caller{wait: wait, open: map[int]*attempt{}}
	for _, a := range []*attempt{lost, late, through} {
		c.open[a.fd] = a
		c.due(a)
	}
	c.now = 10 * time.Millisecond
	for range 2 { // each look sees the same events
		c.hasten(func(a *attempt) bool { return a != late })
		c.now += afterDrop / 2
	}
	for _, a := range c.open {
		a.fd = 0 // not open in this process
	}
	c.open[0] = lost
	c.queue, c.early = c.expire(c.queue), c.expire(c.early)
	if lost.out.Got != replica.Timeout || len(c.early) > 0 {
		t.Errorf("the dropped attempt is %q, and %d others are early", lost.out.Got, len(c.early))
	}
	if late.out.Got != "" || through.out.Got != "" || len(c.queue) != 3 {
		t.Errorf("the others are %q, %q", late.out.Got, through.out.Got)
	}
}
