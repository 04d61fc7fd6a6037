package load

// What the server counts of the stream beside rr, in the window: the bytes that
// came, and how long the window was for them, in ns.
const (
	CountBeside   = "beside_received"
	CountBesideNs = "beside_ns"
)

func requestsClient(t *thread) {
	switch {
	case t.beside():
		source(t)
	case t.spec.Rate > 0:
		pacedClient(t)
	default:
		rrClient(t)
	}
}

func requestsServer(t *thread) {
	switch {
	case t.beside():
	case t.spec.Rate > 0:
		pacedServer(t)
		return
	default:
		rrServer(t)
		return
	}
	sink(t)
	if len(t.marks) == windowBounds {
		a, b := t.marks[0], t.marks[1]
		t.count(CountBeside, b.recvd-a.recvd)
		t.count(CountBesideNs, b.at-a.at)
	}
}
