package replica

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime/debug"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Variant tells how a copy treats rules that cannot be copied, such as those that match by user.
type Variant string

// The variants.
const (
	AsIs    Variant = ""        // there are no such rules
	Lenient Variant = "lenient" // they let packets pass, and stop none
	Strict  Variant = "strict"  // they stop packets, and let none pass
)

// Order describes what a child process builds.
type Order struct {
	Machine *Machine
	Sockets []Socket
	Variant Variant
	// Grants is whether the process has inherited an end of jail.Grants, as descriptor GrantsFD.
	Grants bool
}

// GrantsFD is the first descriptor behind the standard ones.
const GrantsFD = 3

// order is like Order, but decoding it does not check the Machine a second time.
type order struct {
	Machine *plain   `json:"machine"`
	Sockets []Socket `json:"sockets"`
	Variant Variant  `json:"variant,omitempty"`
	Grants  bool     `json:"grants,omitempty"`
	// Rules has the number of nf_tables messages of each namespace. They follow the order in binary
	// form, because most of a machine is rules, and as JSON they would take their size many times.
	Rules []int `json:"rules"`
}

// withoutRules returns the order of a Machine without its nf_tables messages, and these.
func withoutRules(o Order) (*order, []raw.Message) {
	m := *o.Machine
	m.Spaces = slices.Clone(m.Spaces)
	out := &order{Machine: (*plain)(&m), Sockets: o.Sockets, Variant: o.Variant, Grants: o.Grants}
	var all []raw.Message
	for i := range m.Spaces {
		rules := &m.Spaces[i].Nft.Messages
		all = append(all, *rules...)
		out.Rules = append(out.Rules, len(*rules))
		*rules = nil
	}
	return out, all
}

// receiveRules completes an order with the messages that follow it.
func receiveRules(r io.Reader, o *order) error {
	for i, n := range o.Rules {
		if i >= len(o.Machine.Spaces) {
			return errNoSpace
		}
		rules, err := raw.Receive(r, n)
		if err != nil {
			return err
		}
		o.Machine.Spaces[i].Nft.Messages = rules
	}
	return nil
}

var errNoSpace = errors.New("there are rules of a namespace that does not exist")

// Copy is a machine's copy in the child process. See Session for its methods.
type Copy interface {
	Lacks() []Lacks
	Dial(ctx context.Context, dials []Dial) ([]Answer, error)
	Scan(ctx context.Context, scans []Scan) ([][]uint16, error)
	Towards(to netip.Addr) (device string, err error)
	Run(ctx context.Context, c Command) (Output, error)
	Now() (spaces []Space, singled []int, err error)
	Text(ctx context.Context, space int) ([]RuleText, error)
	// Doubts lists the rules of namespaces that commands may have changed which cannot be copied.
	Doubts() ([]Doubts, error)
	// Assume replaces these rules as the variant requires.
	Assume(v Variant) error
	Close() error
}

// Doubts has rules of a namespace.
type Doubts struct {
	Space int             `json:"namespace"`
	Rules []xtables.Doubt `json:"rules"`
}

// request has exactly one field set.
type request struct {
	Order *order `json:"order,omitempty"`
	Dials []Dial `json:"dials,omitempty"`
	Scans []Scan `json:"scans,omitempty"`
	// Towards requests the device that routes to an address.
	Towards *netip.Addr `json:"towards,omitempty"`
	Run     *Command    `json:"run,omitempty"`
	// Now requests the namespaces as they are; see Session.Now.
	Now bool `json:"now,omitempty"`
	// Text requests the texts of a namespace's rules.
	Text   *int    `json:"text,omitempty"`
	Doubts bool    `json:"doubts,omitempty"` // requests Copy.Doubts
	Assume Variant `json:"assume,omitempty"` // requests Copy.Assume
}

type reply struct {
	Err     string     `json:"error,omitempty"`
	Lacks   []Lacks    `json:"lacks,omitempty"`
	Answers []Answer   `json:"answers,omitempty"`
	Ports   [][]uint16 `json:"ports,omitempty"` // of each scan
	Device  string     `json:"device,omitempty"`
	Output  Output     `json:"output,omitzero"`
	// NoJail is the reason why a command was not run; "": it was.
	NoJail string  `json:"no_jail,omitempty"`
	Now    []Space `json:"now,omitempty"`
	// Singled has what Machine.Singled returns, with Now.
	Singled []int      `json:"singled,omitempty"`
	Text    []RuleText `json:"text,omitempty"`
	Doubts  []Doubts   `json:"doubts,omitempty"`
}

// maxMessage limits the size of a request or reply, in bytes.
const maxMessage = 256 << 20

var errTooLong = fmt.Errorf("a message has more than %d bytes", maxMessage)

// send writes the length of v as JSON, then v, so that the receiver can allocate a buffer that
// fits.
func send(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return errTooLong
	}
	if err := binary.Write(w, binary.NativeEndian, uint32(len(b))); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func receive(r io.Reader, v any) error {
	var n uint32
	if err := binary.Read(r, binary.NativeEndian, &n); err != nil {
		return err
	}
	if n > maxMessage {
		return errTooLong
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

var errNoCopy = errors.New("there is no copy yet")

// Serve carries out a Session's requests on the Copy that build makes. It returns as soon as in
// ends, even during a request; then the process must exit.
func Serve(in io.Reader, out io.Writer, build func(Order) (Copy, error)) error {
	requests := make(chan request)
	ended := make(chan error, 1)
	go func() {
		in := bufio.NewReader(in)
		for {
			var q request
			err := receive(in, &q)
			if err == nil && q.Order != nil {
				err = receiveRules(in, q.Order)
			}
			if err != nil {
				ended <- err
				return
			}
			requests <- q
		}
	}()
	failed := make(chan error, 1)
	go func() {
		var c Copy
		for q := range requests {
			var r reply
			err := carryOut(q, &r, &c, build)
			if err != nil {
				r.Err = err.Error()
			}
			if err := send(out, r); err != nil {
				failed <- fmt.Errorf("reply: %w", err)
				return
			}
		}
	}()
	select {
	case err := <-ended:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("read a request: %w", err)
	case err := <-failed:
		return err
	}
}

func carryOut(q request, r *reply, c *Copy, build func(Order) (Copy, error)) (err error) {
	ctx := context.Background()
	switch {
	case q.Order != nil && *c == nil:
		o := Order{(*Machine)(q.Order.Machine), q.Order.Sockets, q.Order.Variant, q.Order.Grants}
		if *c, err = build(o); err == nil {
			r.Lacks = (*c).Lacks()
		}
		debug.FreeOSMemory() // what the order took
	case *c == nil:
		err = errNoCopy
	case len(q.Scans) > 0:
		r.Ports, err = (*c).Scan(ctx, q.Scans)
	case q.Towards != nil:
		r.Device, err = (*c).Towards(*q.Towards)
	case q.Run != nil:
		r.Output, err = (*c).Run(ctx, *q.Run)
		var no *NoJailError
		if errors.As(err, &no) {
			r.NoJail, err = no.Reason.Error(), nil
		}
	case q.Now:
		r.Now, r.Singled, err = (*c).Now()
	case q.Text != nil:
		r.Text, err = (*c).Text(ctx, *q.Text)
	case q.Doubts:
		r.Doubts, err = (*c).Doubts()
	case q.Assume != AsIs:
		err = (*c).Assume(q.Assume)
	default:
		r.Answers, err = (*c).Dial(ctx, q.Dials)
	}
	return err
}
