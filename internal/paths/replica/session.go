package replica

import (
	"context"
	"errors"
	"net/netip"
)

// Session is a copy of a machine, in a child process.
type Session struct{}

// Lacks is a part of the machine that the copy does not have.
type Lacks struct {
	Space  int    `json:"namespace"`
	What   string `json:"what"`
	Why    string `json:"why"`
	Device string `json:"device,omitempty"` // "": it concerns the whole namespace
}

var errUnfinished = errors.New("not implemented")

// ReadText reads the texts of a namespace's rules into Space.Text, by iptables-save and nft where
// they are installed.
func (m *Machine) ReadText(_ context.Context, _ int) error { return errUnfinished }

// Start builds a copy of m with stand-ins for sockets, in a child process. The caller closes the
// Session. Fields of m that are not used here may be nil.
func Start(_ context.Context, _ *Machine, _ []Socket) (*Session, error) {
	return nil, errUnfinished
}

// Lacks lists what could not be copied, besides Space.Unknown.
func (s *Session) Lacks() []Lacks { return nil }

// Dial makes all dials, most of them at once, and returns an answer for each. It waits for answers
// at least half a second, and longer if this machine is busy.
func (s *Session) Dial(_ context.Context, _ []Dial) ([]Answer, error) { return nil, errUnfinished }

// Scan returns the TCP ports of an address, from 1 to 65535, at which the client is answered.
func (s *Session) Scan(_ context.Context, _ Client, _ netip.Addr) ([]uint16, error) {
	return nil, errUnfinished
}

// Close ends the copy.
func (s *Session) Close() error { return nil }
