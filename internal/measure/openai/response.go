package openai

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/sse"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const maxTokens = 1_000_000

// Response is what was measured of a response. Its times count from the first write of the request
// on the open connection.
type Response struct {
	Connect  time.Duration   // with TLS, without the name's look-up; 0: it was open
	Arrivals []time.Duration // of events that have content, of one choice
	Glued    int             // in one read with another one
	End      time.Duration   // when [DONE] came, or the body's end
	Tokens   int             // as the server counts; 0: unknown, or of several choices
	Finish   string          // reason for the stop: "stop", "length", …
	RTT      time.Duration   // smoothed by the kernel, at the end; 0: unknown
	LookUp   time.Duration   // 0: an address was given, or the connection was open
	Lost     Lost            // in this response, and before it if it opened the connection
	Remote   netip.AddrPort
	Began    time.Time // when writing the request began
	Local    netip.AddrPort
	Mark     uint32 // of the request; 0: none
	Texts    []Text // up to each of Arrivals; nil without a mark
	// Ends are the numbers of bytes of the connection up to each of Arrivals, and Asked that of the
	// bytes sent up to the request's end. Without TLS or a mark they are nil and 0.
	Ends   []int64
	Asked  int64
	Others int    // events that are no part of a response, such as pings
	Other  string // the first of them
}

type stream struct {
	e      *Endpoint
	a      *answer
	r      *Response
	events sse.Decoder
	most   int    // tokens that were asked for; 0: any number
	read   int    // number of the read that brought the last token
	same   int    // tokens that came with this read
	begun  bool   // something came that is not blank
	seen   bool   // an event came
	front  []byte // of what came before the first event
	text   Reader
	parser parser
	done   bool
}

func (s *Session) collect(a *answer, most int) (*Response, error) {
	if err := s.failed(a); err != nil {
		return nil, err
	}
	content, err := s.content(a)
	if err != nil {
		return nil, err
	}
	const roomy = 4096
	st := &stream{e: s.e, a: a, most: most, r: &Response{
		Connect:  a.connect,
		Arrivals: make([]time.Duration, 0, min(s.e.o.MaxTokens, roomy)),
		Remote:   a.conn.remote(),
		Began:    a.begun,
		Local:    a.conn.local(),
		Mark:     a.mark,
	}, text: NewReader(s.e.several)}
	st.events.Unknown = st.unknown
	for !st.done {
		n, err := content.Read(s.buf)
		if st.otherwise(s.buf[:n]) {
			return nil, s.notEvents(a, s.buf[:n], content)
		}
		if err := st.feed(s.buf[:n]); err != nil {
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

// otherwise reports whether a response that begins with the piece is JSON or HTML and no stream of
// events, whatever its Content-Type is.
func (st *stream) otherwise(piece []byte) bool {
	text := bytes.TrimLeft(piece, " \t\r\n")
	if st.begun || len(text) == 0 {
		return false
	}
	st.begun = true
	return strings.IndexByte("{[<", text[0]) >= 0
}

func (st *stream) feed(piece []byte) error {
	err := st.events.Feed(piece, st.event)
	switch {
	case errors.Is(err, sse.ErrLongLine):
		return fmt.Errorf("the server sent a line longer than %d MiB in its events",
			sse.DefaultLimit>>20)
	case errors.Is(err, sse.ErrTooLong):
		return fmt.Errorf("the server sent an event longer than %d MiB", sse.DefaultLimit>>20)
	}
	if !st.seen {
		st.front = append(st.front, piece[:min(len(piece), pieceSize-len(st.front))]...)
	}
	return err
}

// event handles an event. It ignores those after [DONE], which do not belong to the response.
func (st *stream) event(ev sse.Event) error {
	st.seen = true
	switch {
	case st.done:
		return nil
	case ends(ev.Data):
		st.done = true
		return nil
	case ev.Type == "error":
		return st.fault(cmp.Or(faultText(ev.Data), string(bytes.TrimSpace(ev.Data)),
			"an event of the type error"))
	}
	p, err := st.parser.parse(ev.Data, st.text.read())
	switch {
	case err != nil:
		return fmt.Errorf("the server sent an event that is not a completion chunk: %s",
			st.e.secrets.clean(string(ev.Data)))
	case p.fault != "":
		return st.fault(p.fault)
	case p.other:
		st.other(ev)
	}
	if p.tokens > 0 && !st.e.several {
		st.r.Tokens = p.tokens
	}
	if read := st.text.read(); p.finish != "" && (read < 0 || read == p.choice) {
		st.r.Finish = st.e.secrets.name(p.finish)
	}
	switch {
	case p.text != "" && st.text.new(p):
		return st.token(p.text)
	case p.text != "" && st.e.several: // another one goes on
		st.patient()
	}
	return nil
}

func (st *stream) other(ev sse.Event) {
	const longest = 60 // characters
	if st.r.Others++; st.r.Others > 1 {
		return
	}
	text := "data: " + string(ev.Data)
	if ev.Type != "message" {
		text = "event: " + ev.Type + ", " + text
	}
	st.r.Other = printable.Start(st.e.secrets.clean(text), longest)
}

// unknown handles the field "error: {…}" of older servers of llama.cpp.
func (st *stream) unknown(name, value []byte) error {
	if string(name) != "error" || st.done {
		return nil
	}
	text := cmp.Or(faultText(value), string(value))
	return st.fault(text)
}

func (st *stream) fault(text string) error {
	return fmt.Errorf("the server broke off after %s: %s", tokens(len(st.r.Arrivals)),
		st.e.secrets.clean(text))
}

func (st *stream) token(text string) error {
	if len(st.r.Arrivals) == st.e.mostTokens {
		return fmt.Errorf("the response has more than %d tokens", st.e.mostTokens)
	}
	socket := st.a.conn.socket
	st.r.Arrivals = append(st.r.Arrivals, socket.at.Sub(st.a.begun))
	if st.r.Mark != 0 {
		st.text.add(text)
		st.r.Texts = append(st.r.Texts, st.text.Text)
		if st.a.conn.tls != "" {
			st.r.Ends, st.r.Asked = append(st.r.Ends, socket.taken), st.a.asked
		}
	}
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
	st.patient()
	return nil
}

// patient waits as long as it may take for the next token. After more than were asked for, the
// response must end.
func (st *stream) patient() {
	if st.most == 0 || len(st.r.Arrivals) <= st.most {
		st.a.conn.waitUntil(st.a.conn.socket.at.Add(st.e.o.Timeout))
	}
}

// ended returns why a response ended before [DONE], or nil if it is complete.
func (st *stream) ended(err error) error {
	if errors.Is(err, io.EOF) && st.events.Pending() { // clients read an event without a blank line
		if err := st.feed([]byte("\n\n")); err != nil || st.done {
			return err
		}
	}
	n := len(st.r.Arrivals)
	switch {
	case errors.Is(err, io.EOF) && st.r.Finish != "":
		return nil
	case errors.Is(err, io.EOF) && !st.seen && st.a.kind() != eventStream:
		return st.e.noStream(st.a.kind(), st.e.secrets.clean(string(st.front)))
	case errors.Is(err, io.EOF) && st.a.body.whole():
		return fmt.Errorf(
			"the server ended its response after %s without saying why: neither [DONE] nor a finish_reason came%s",
			tokens(n), st.sent())
	case gone(err) && st.events.Pending():
		return st.cut(" and in the middle of an event")
	case gone(err):
		return st.cut(st.sent())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return st.late()
	}
	return fmt.Errorf("read the response after %s: %w", tokens(n), err)
}

// cut returns the error for a connection that was closed before the end of the response. Envoy's
// routes have a timeout for the whole response, which no pause needs to precede.
func (st *stream) cut(more string) error {
	text := fmt.Sprintf("the server closed the connection after %s, before the end of its response%s",
		tokens(len(st.r.Arrivals)), more)
	if !strings.Contains(strings.ToLower(st.a.Header.Get("Server")), "envoy") {
		return errors.New(text)
	}
	return &hinted{text, "Envoy ends responses after the timeout of its route, 15 s if none is set, " +
		"also while tokens come: timeout: 0s there turns it off"}
}

// odd quotes the first event that is no completion chunk, if there is one.
func (r *Response) odd() string {
	switch r.Others {
	case 0:
		return ""
	case 1:
		return "; one of its events was no completion chunk: " + r.Other
	}
	return fmt.Sprintf("; %d of its events were no completion chunks, the first: %s", r.Others,
		r.Other)
}

// sent quotes what came instead of tokens.
func (st *stream) sent() string {
	switch {
	case st.r.Others > 0:
		return st.r.odd()
	case !st.seen && st.begun:
		return "; it sent no event, but: " + st.e.secrets.clean(string(st.front))
	}
	return ""
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
	case st.most > 0 && len(st.r.Arrivals) > st.most:
		return fmt.Errorf(
			"the response did not end within %v after the %s that were asked for: %s came",
			limit, tokens(st.most), tokens(len(st.r.Arrivals)))
	case st.events.Pending():
		return fmt.Errorf("an event did not end within %v, after %s", limit, after)
	}
	return fmt.Errorf("no token within %v, after %s%s", limit, after, st.sent())
}

func tokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}
