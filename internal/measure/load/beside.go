package load

// needsTimeout reports whether receiving needs a timeout: trips may be few and long, and a blocked
// thread would pass the window's bounds late. A watched thread does not pass them itself.
func (t *thread) needsTimeout() bool {
	return !t.watched && (t.rr.Rate > 0 || t.rr.Beside || t.spec.Streams > 1)
}

func requestsClient(t *thread) {
	switch {
	case t.beside():
		source(t)
	case t.rr.Rate > 0:
		pacedClient(t)
	case t.needsTimeout():
		timeoutClient(t)
	default:
		rrClient(t)
	}
}

func requestsServer(t *thread) {
	t.serves = true
	switch {
	case t.beside():
		sink(t)
	case t.needsTimeout():
		timeoutServer(t)
	default:
		rrServer(t)
	}
}
