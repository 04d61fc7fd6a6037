package dial

import (
	"fmt"
	"net/netip"
	"strings"
)

// answer is the answer of a stand-in. Its text is "socket N ADDRESS", with the stand-in's index and
// the address from which it sees the client. Each relay in between prepends a line "relay N". A
// relay that cannot try to connect answers "failed WHY". The answer to a long request ends with
// zeros. A request by datagram is "toll TOKEN", and the answer repeats it.
type answer struct {
	relays []int
	socket int
	seen   netip.Addr
}

const (
	mostRelays = 8
	// zeros in each direction of a long exchange: 1, 4, 16, …, each part after the answer to the
	// last one
	much        = 1 << 16
	requestForm = "toll %08x\n"
	requestSize = len("toll 01234567\n")
)

func relayLine(i int) string { return fmt.Sprintf("relay %d\n", i) }

func socketLine(i int, client netip.Addr) string {
	return fmt.Sprintf("socket %d %s\n", i, client.WithZone(""))
}

const failedPrefix = "failed "

func failedLine(err error) string { return failedPrefix + err.Error() + "\n" }

// standInError is the reason why a relay could not try to connect.
type standInError struct{ why string }

func (e *standInError) Error() string { return "docker-proxy's connection: " + e.why }

func isRequest(b []byte) bool { _, ok := token(b); return ok && len(b) == requestSize }

// token returns the token of the request at the end of a datagram.
func token(b []byte) (t uint32, ok bool) {
	if len(b) < requestSize {
		return 0, false
	}
	b = b[len(b)-requestSize:]
	n, err := fmt.Sscanf(string(b), requestForm, &t)
	return t, n == 1 && err == nil && string(b) == fmt.Sprintf(requestForm, t)
}

// parse returns false until the answer is complete.
func parse(b []byte) (a answer, complete bool, err error) {
	for text := string(b); ; {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			return a, false, nil
		}
		if why, failed := strings.CutPrefix(line, failedPrefix); failed {
			return a, true, &standInError{why}
		}
		var n int
		var seen string
		if _, err := fmt.Sscanf(line, "relay %d", &n); err == nil && len(a.relays) < mostRelays {
			a.relays, text = append(a.relays, n), rest
			continue
		}
		if _, err := fmt.Sscanf(line, "socket %d %s", &a.socket, &seen); err != nil {
			return a, false, fmt.Errorf("answer %q", line)
		}
		a.seen, err = netip.ParseAddr(seen)
		return a, err == nil, err
	}
}
