package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Variant says what becomes of rules that cannot be copied, such as those that match by user.
type Variant string

// The variants.
const (
	AsIs   Variant = "" // there are no such rules
	Always Variant = "always"
	Never  Variant = "never"
)

// Order says what a child process builds.
type Order struct {
	Machine Machine  `json:"machine"`
	Sockets []Socket `json:"sockets"`
	Variant Variant  `json:"variant,omitempty"`
}

// Copy is a machine's copy in the child process. See Session for its methods.
type Copy interface {
	Lacks() []Lacks
	Dial(ctx context.Context, dials []Dial) ([]Answer, error)
	Scan(ctx context.Context, from Client, to netip.Addr) ([]uint16, error)
	Close() error
}

// request has one of its fields.
type request struct {
	Order *Order `json:"order,omitempty"`
	Dials []Dial `json:"dials,omitempty"`
	Scan  *scan  `json:"scan,omitempty"`
}

type scan struct {
	Client Client     `json:"client"`
	To     netip.Addr `json:"to"`
}

type reply struct {
	Err     string   `json:"error,omitempty"`
	Lacks   []Lacks  `json:"lacks,omitempty"`
	Answers []Answer `json:"answers,omitempty"`
	Ports   []uint16 `json:"ports,omitempty"`
}

// maxMessage limits a request and a reply, in bytes.
const maxMessage = 256 << 20

// receiver reads JSON values of at most maxMessage bytes.
type receiver struct {
	limit *io.LimitedReader
	dec   *json.Decoder
}

func newReceiver(r io.Reader) receiver {
	limit := &io.LimitedReader{R: r}
	return receiver{limit, json.NewDecoder(limit)}
}

func (r receiver) next(v any) error {
	r.limit.N = maxMessage
	return r.dec.Decode(v)
}

var errNoCopy = errors.New("there is no copy yet")

// Serve carries out a Session's requests with the Copy that build makes. It returns as soon as in
// ends, even while a request is being carried out: the process then has to end.
func Serve(in io.Reader, out io.Writer, build func(Order) (Copy, error)) error {
	requests := make(chan request)
	ended := make(chan error, 1)
	go func() {
		from := newReceiver(in)
		for {
			var q request
			if err := from.next(&q); err != nil {
				ended <- err
				return
			}
			requests <- q
		}
	}()
	failed := make(chan error, 1)
	go func() {
		var c Copy
		to := json.NewEncoder(out)
		for q := range requests {
			var r reply
			err := carryOut(q, &r, &c, build)
			if err != nil {
				r.Err = err.Error()
			}
			if err := to.Encode(r); err != nil {
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
		if *c, err = build(*q.Order); err == nil {
			r.Lacks = (*c).Lacks()
		}
	case *c == nil:
		err = errNoCopy
	case q.Scan != nil:
		r.Ports, err = (*c).Scan(ctx, q.Scan.Client, q.Scan.To)
	default:
		r.Answers, err = (*c).Dial(ctx, q.Dials)
	}
	return err
}
