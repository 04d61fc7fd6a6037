package agent

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// handshake bounds how long a stranger may take to show its key and to say who it
	// is.
	handshake = 5 * time.Second
	// strangers are how many may be at it at once.
	strangers = 64
	// pressed is how long each may take when more want to come in, and looked how
	// often that is seen to: connections that say nothing must not keep agents waiting.
	pressed = time.Second
	looked  = 100 * time.Millisecond
)

// door lets so many strangers in at once.
type door struct {
	slots chan struct{}

	mu     sync.Mutex // guards following
	inside map[net.Conn]time.Time
	turned int
	last   error
}

func newDoor() door {
	return door{slots: make(chan struct{}, strangers), inside: map[net.Conn]time.Time{}}
}

// enter waits for a place. Leave gives it back, and may be called twice.
func (d *door) enter(c net.Conn) (leave func()) {
	wait := time.NewTicker(looked)
	defer wait.Stop()
	for in := false; !in; {
		select {
		case d.slots <- struct{}{}:
			in = true
		case <-wait.C:
			d.putOut()
		}
	}
	d.mu.Lock()
	d.inside[c] = time.Now()
	d.mu.Unlock()
	return sync.OnceFunc(func() {
		d.mu.Lock()
		delete(d.inside, c)
		d.mu.Unlock()
		<-d.slots
	})
}

// putOut ends the connections of those who take too long.
func (d *door) putOut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c, came := range d.inside {
		if time.Since(came) > pressed {
			c.Close()
		}
	}
}

// turn notes that somebody was turned away.
func (d *door) turn(from net.Addr, err error) {
	if errors.Is(err, net.ErrClosed) {
		err = errors.New("it said nothing")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turned++
	d.last = fmt.Errorf("%s: %s", from, clean(err.Error()))
}

// told says who was turned away, for an error.
func (d *door) told() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turned == 0 {
		return ""
	}
	return fmt.Sprintf(" (turned away: %d, the last: %v)", d.turned, d.last)
}
