package agent

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// Box is a container to make on an agent's machine, with an agent in it.
type Box struct {
	Number  uint64 `json:"number"`  // for removal
	ID      string `json:"id"`      // of the agent in it
	Name    string `json:"name"`    // in reports
	Network string `json:"network"` // as for docker run's --network; "": a new bridge network
	LAN     *LAN   `json:"lan,omitempty"`
}

// LAN is a macvlan or ipvlan network for a box, on a network card.
type LAN struct {
	Driver string `json:"driver"` // Docker's: macvlan or ipvlan
	Kind   string `json:"kind"`
	Parent string `json:"parent"`
	Subnet string `json:"subnet"`
	Addr   string `json:"addr"` // of the box
}

// Engine makes boxes on an agent's machine.
type Engine interface {
	// Ready returns the engine's name and version, or an error if it cannot make boxes.
	Ready(ctx context.Context) (version string, err error)
	// Make makes a box, whose first process is toll as an agent that reads its bundle from the
	// standard input (see Introduce). The box ends when the returned input and output are closed.
	Make(ctx context.Context, b Box) (io.ReadWriteCloser, error)
	// Remove removes the box. It returns nil if the box does not exist.
	Remove(number uint64) error
	// Close removes everything that was made.
	Close() error
}

var errNoEngine = errors.New("this agent makes no containers")

type boxRequest struct {
	Ready  bool   `json:"ready,omitempty"`
	Make   *Box   `json:"make,omitempty"`
	Remove uint64 `json:"remove,omitempty"`
	Clear  bool   `json:"clear,omitempty"`
}

// boxLimit is added to the usual limit, because the engine may have to load an image.
const boxLimit = 2 * time.Minute

// Boxes returns the engine's name and version, or an error if it cannot make boxes.
func (a *Agent) Boxes(ctx context.Context) (engine string, err error) {
	ans, err := a.ask(ctx, request{Box: &boxRequest{Ready: true}}, boxLimit)
	return ans.Engine, err
}

// MakeBox makes a box and waits for its agent. The caller calls remove, which releases the agent
// and removes the box.
func (a *Agent) MakeBox(ctx context.Context, b Box) (inner *Agent, remove func() error, err error) {
	id := make([]byte, 16) //nolint:mnd // bytes that nobody guesses
	if _, err := rand.Read(id); err != nil {
		return nil, nil, err
	}
	b.Number, b.ID = a.number(), hex.EncodeToString(id)
	remove = func() error {
		if inner != nil {
			inner.Dismiss()
		}
		_, err := a.ask(context.Background(), request{Box: &boxRequest{Remove: b.Number}}, boxLimit)
		if a.Err() != nil {
			return nil //nolint:nilerr // the box ended with the agent
		}
		return err
	}
	// Without ctx, because a box that the agent makes must be removed.
	if _, err = a.ask(context.WithoutCancel(ctx), request{Box: &boxRequest{Make: &b}}, boxLimit); err == nil {
		ctx, cancel := context.WithTimeoutCause(
			ctx, a.hub.silence, errors.New("its agent did not connect"))
		inner, err = a.hub.Wait(ctx, b.ID)
		cancel()
	}
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return inner, remove, nil
}

// ClearBoxes removes everything that the agent's machine made for boxes.
func (a *Agent) ClearBoxes() error {
	if a.Err() != nil { // an agent that loses its hub clears its boxes itself
		return nil
	}
	_, err := a.ask(context.Background(), request{Box: &boxRequest{Clear: true}}, boxLimit)
	return err
}

func (o boxRequest) check() error {
	n := 0
	for _, is := range []bool{o.Ready, o.Make != nil, o.Remove != 0, o.Clear} {
		if is {
			n++
		}
	}
	if n != 1 || o.Make != nil && (o.Make.Number == 0 || o.Make.ID == "" || o.Make.Name == "") {
		return fmt.Errorf(
			"%w: a request to an engine has one part, and a box has a number, an ID and a name",
			errNonsense)
	}
	return nil
}

func (s *server) box(o boxRequest) (version string, err error) {
	e := s.config.Engine
	if e == nil || s.config.Open == nil {
		return "", errNoEngine
	}
	ctx, cancel := context.WithTimeout(context.Background(), boxLimit)
	defer cancel()
	switch {
	case o.Ready:
		return e.Ready(ctx)
	case o.Remove != 0:
		return "", e.Remove(o.Remove)
	case o.Clear:
		return "", e.Close()
	}
	over, err := e.Make(ctx, *o.Make)
	if err != nil {
		return "", err
	}
	if err := s.carry(over, *o.Make); err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", o.Make.Name, err), over.Close(),
			e.Remove(o.Make.Number))
	}
	return "", nil
}

func (s *server) carry(over io.ReadWriteCloser, b Box) error {
	late := time.AfterFunc(s.silence, func() { _ = over.Close() })
	defer late.Stop()
	in := bufio.NewReader(over)
	if err := awaited(in, b.ID); err != nil {
		return err
	}
	if _, err := over.Write(Introduce(s.config.Bundle, b.Name)); err != nil {
		return err
	}
	c, err := AtHub(struct {
		io.Reader
		io.WriteCloser
	}{in, over})
	if err != nil {
		return err
	}
	go func() {
		for {
			down, err := c.Accept()
			if err != nil {
				return
			}
			go s.pass(down)
		}
	}()
	return nil
}

// Introduce returns the first input of an agent that reaches its hub by the standard input: a line
// with the bundle's length and the agent's name, then the bundle.
func Introduce(bundle []byte, name string) []byte {
	return append(fmt.Appendf(nil, "%d %s\n", len(bundle), name), bundle...)
}

func awaited(in *bufio.Reader, id string) error {
	const most = 100 // lines
	for range most {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("it exited at once: %w", err)
		}
		if strings.TrimRight(string(line), "\r\n") == id+" "+Arg {
			return nil
		}
	}
	return fmt.Errorf("%w: no agent in %d lines", errNonsense, most)
}

func (s *server) pass(down net.Conn) {
	up, err := s.config.Open()
	if err != nil {
		_ = down.Close()
		return
	}
	go func() {
		_, _ = io.Copy(up, down)
		_ = up.Close()
	}()
	_, _ = io.Copy(down, up)
	_ = down.Close()
}

func remedyOf(err error) string {
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		return u.Remedy
	}
	return ""
}
