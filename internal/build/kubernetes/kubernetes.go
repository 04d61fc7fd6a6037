package kubernetes

import (
	"math/rand/v2"
	"sync"
)

// Name is the backend's name.
const Name = "kubernetes"

// Kubernetes is the backend. The zero value is ready, but for Version; Close ends it.
type Kubernetes struct {
	Access
	// Nodes are those of the run: first the server's, then the client's. Empty: all nodes that
	// take pods.
	Nodes []string
	// Most is how many nodes are used at most, the first ones; 0: all.
	Most int
	// Image is toll's image in a registry; "" is its own, which every node must have.
	Image string
	// Unprivileged makes only pods that may do nothing, and reads only what they count.
	Unprivileged bool
	// Version is toll's.
	Version string
	// Program is the static binary in the image; "" is this program.
	Program string
	// StateDir is where journals are kept; "" is the user's state directory.
	StateDir string

	mu  sync.Mutex // guards following
	run *run
	err error // why there is none
}

// Name is "kubernetes".
func (k *Kubernetes) Name() string { return Name }

// Distant is true: client and server may have clocks of their own.
func (k *Kubernetes) Distant() bool { return true }

// Close ends the agents and removes all that was made.
func (k *Kubernetes) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.run
	k.run, k.err = nil, nil
	if r == nil {
		return nil
	}
	return r.close()
}

// drawHostPort draws a port of a node's own, below those that clients dial from and NodePorts have.
func drawHostPort() hostPort {
	const first, count = 20000, 9000
	return hostPort(first + rand.N(count))
}
