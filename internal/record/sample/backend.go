package sample

const (
	// Lab is the backend with machines of toll's own, with which the others are compared.
	Lab        = "lab"
	Docker     = "docker"
	Podman     = "podman"
	Swarm      = "swarm"
	Kubernetes = "kubernetes"
	Peer       = "peer"
)

// Distant reports whether client and server are on different machines, whose clocks differ.
func Distant(backend string) bool {
	return backend == Swarm || backend == Kubernetes || backend == Peer
}

// Backends returns all backends.
func Backends() []string { return []string{Lab, Docker, Podman, Swarm, Kubernetes, Peer} }
