package openai

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/sse"
)

const maxTokens = 1_000_000

// Response is what was measured of a response. Its times count from the first write of the request
// on the open connection.
type Response struct {
	Connect  time.Duration   // with TLS, without the name's look-up; 0: it was open
	Arrivals []time.Duration // of events that have content
	Glued    int             // in one read with another one
	End      time.Duration   // when [DONE] came, or the body's end
	Tokens   int             // as the server counts; 0: unknown
	Finish   string          // reason for the stop: "stop", "length", …
	RTT      time.Duration   // smoothed by the kernel, at the end; 0: unknown
	LookUp   time.Duration   // 0: an address was given, or the connection was open
	Lost     Lost            // in this response, and before it if it opened the connection
	Remote   netip.AddrPort
}

type stream struct {
	e      *Endpoint
	a      *answer
	r      *Response
	events sse.Decoder
	read   int // number of the read that brought the last token
	same   int // tokens that came with this read
	done   bool
}

func (s *Session) collect(a *answer) (*Response, error) {
	if err := s.refused(a); err != nil {
		return nil, err
	}
	const roomy = 4096
	st := &stream{e: s.e, a: a, r: &Response{
		Connect:  a.connect,
		Arrivals: make([]time.Duration, 0, min(s.e.o.MaxTokens, roomy)),
		Remote:   a.conn.remote(),
	}}
	st.events.Unknown = st.unknown
	for !st.done {
		n, err := a.body.Read(s.buf)
		if err := st.events.Feed(s.buf[:n], st.event); errors.Is(err, sse.ErrLongLine) {
			return nil, fmt.Errorf("the server sent a line longer than %d MiB in its events",
				sse.DefaultLimit>>20)
		} else if errors.Is(err, sse.ErrTooLong) {
			return nil, fmt.Errorf("the server sent an event longer than %d MiB",
				sse.DefaultLimit>>20)
		} else if err != nil {
			return nil, err
		}
		if err != nil && !st.done {
			if err := st.ended(err); err != nil {
				return nil, err
			}
			break
		}
	}
	st.r.End = a.conn.socket.at.Sub(a.begun)
	st.r.RTT, st.r.Lost = a.conn.told()
	if a.connect > 0 {
		st.r.LookUp = a.conn.lookUp
	}
	s.drain(a)
	return st.r, nil
}

// event handles an event. It ignores those after [DONE], which do not belong to the response.
func (st *stream) event(ev sse.Event) error {
	if st.done {
		return nil
	}
	if string(ev.Data) == "[DONE]" {
		st.done = true
		return nil
	}
	p, err := parseChunk(ev.Data)
	if ev.Type == "error" {
		p.fault, err = faultText(ev.Data), nil
		if p.fault == "" {
			p.fault = string(ev.Data)
		}
	}
	if err != nil {
		return fmt.Errorf("the server sent an event that is not a completion chunk: %s",
			st.e.secrets.clean(string(ev.Data)))
	}
	if p.fault != "" {
		return st.fault(p.fault)
	}
	if p.tokens > 0 {
		st.r.Tokens = p.tokens
	}
	if p.finish != "" {
		st.r.Finish = st.e.secrets.clean(p.finish)
	}
	if p.token {
		return st.token()
	}
	return nil
}

// unknown handles the field "error: {…}" of older servers of llama.cpp.
func (st *stream) unknown(name, value []byte) error {
	if string(name) != "error" || st.done {
		return nil
	}
	text := faultText(value)
	if text == "" {
		text = string(value)
	}
	return st.fault(text)
}

func (st *stream) fault(text string) error {
	return fmt.Errorf("the server broke off after %s: %s", tokens(len(st.r.Arrivals)),
		st.e.secrets.clean(text))
}

func (st *stream) token() error {
	if len(st.r.Arrivals) == st.e.mostTokens {
		return fmt.Errorf("the response has more than %d tokens", st.e.mostTokens)
	}
	socket := st.a.conn.socket
	st.r.Arrivals = append(st.r.Arrivals, socket.at.Sub(st.a.begun))
	if st.read != socket.reads {
		st.read, st.same = socket.reads, 0
	}
	switch st.same++; st.same {
	case 1:
	case 2:
		st.r.Glued += 2
	default:
		st.r.Glued++
	}
	st.a.conn.waitUntil(socket.at.Add(st.e.o.Timeout))
	return nil
}

func (st *stream) ended(err error) error {
	n := len(st.r.Arrivals)
	switch {
	case errors.Is(err, io.EOF) && st.r.Finish != "":
		return nil
	case st.a.body.whole():
		return fmt.Errorf(
			"the server ended its response after %s without saying why: neither [DONE] nor a finish_reason came", tokens(n))
	case gone(err) && st.events.Pending():
		return fmt.Errorf(
			"the server closed the connection after %s, before the end of its response and in the middle of an event", tokens(n))
	case gone(err):
		return fmt.Errorf(
			"the server closed the connection after %s, before the end of its response", tokens(n))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return st.late()
	}
	return fmt.Errorf("read the response after %s: %w", tokens(n), err)
}

func (st *stream) late() error {
	limit, after := st.e.o.Timeout, tokens(len(st.r.Arrivals))
	switch {
	case st.a.body.broken != "":
		return fmt.Errorf("the %s did not end within %v, after %s", st.a.body.broken, limit, after)
	case st.r.Finish != "":
		return fmt.Errorf(
			"the response did not end within %v after %s, though the model had finished", limit,
			after)
	case st.events.Pending():
		return fmt.Errorf("an event did not end within %v, after %s", limit, after)
	}
	return fmt.Errorf("no token within %v, after %s", limit, after)
}

func tokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}
