package sample

// The backends, as --on and results files name them.
const (
	// Lab is the backend whose machines are toll's own. Others build on real machines, and their
	// cells are compared with the lab's.
	Lab        = "lab"
	Docker     = "docker"
	Swarm      = "swarm"
	Kubernetes = "kubernetes"
	Peer       = "peer"
)

// Distant reports whether a backend places client and server on different machines, with clocks of
// their own.
func Distant(backend string) bool {
	return backend == Swarm || backend == Kubernetes || backend == Peer
}

// Backends returns all backends.
func Backends() []string { return []string{Lab, Docker, Swarm, Kubernetes, Peer} }
