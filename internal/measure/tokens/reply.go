package tokens

import (
	"bytes"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/sse"
)

// Event is one that brings text.
type Event struct {
	openai.Text
	Offset int64 // in the stream, behind its last byte
}

// reply is a response of a server or relay.
type reply struct {
	events []Event
	coding string // of its content, which is not decoded; "": it is
	failed bool   // its status is none of success
	ended  bool
	size   int64 // offset behind it, once it has ended

	at     int64        // offset behind the line that is read
	lines  int          // of JSON, which Ollama sends
	parsed *sse.Decoder // nil: nothing is read any more
	text   openai.Reader
	zipped *gunzip // nil: the content is not compressed
}

const gzipCoding = "gzip"

// newReply returns a reply whose content has no coding. text reads its events.
func newReply(text openai.Reader) *reply {
	r := &reply{parsed: &sse.Decoder{}, text: text}
	r.parsed.Unknown = func(name, value []byte) error {
		if name[0] == '{' {
			r.lines++
		}
		return r.add(slices.Concat(name, []byte{':'}, value))
	}
	return r
}

// begin reads the reply's header.
func (r *reply) begin(lines []string, status string) {
	r.failed = status[0] != '2'
	switch coding := openai.Coding(field(lines, "Content-Encoding")); coding {
	case "":
	case gzipCoding:
		r.zipped = &gunzip{}
	default:
		r.coding, r.parsed = coding, nil
	}
}

func (r *reply) add(data []byte) error {
	if r.text.Add(data) {
		r.events = append(r.events, Event{r.text.Text, r.at})
	}
	return nil
}

// line reads a line, or a part of one, before an offset.
func (r *reply) line(b []byte, end int64) {
	r.at = end
	err := r.parsed.Feed(b, func(e sse.Event) error { return r.add(e.Data) })
	if err != nil {
		r.parsed = nil // too long for an event: the body's end is still found
	}
}

// body reads bytes of the body before an offset.
func (r *reply) body(piece []byte, end int64) {
	at := end - int64(len(piece))
	if r.parsed != nil && r.zipped != nil {
		var err error
		if piece, err = r.zipped.feed(piece); err != nil {
			r.coding, r.parsed = gzipCoding, nil
		}
		at = end // of the bytes that brought the text
	}
	for len(piece) > 0 && r.parsed != nil {
		// By lines, so that an event's offset is that behind its last byte.
		n := bytes.IndexByte(piece, '\n') + 1
		if n == 0 {
			n = len(piece)
		}
		if r.zipped == nil {
			at += int64(n)
		}
		r.line(piece[:n], at)
		piece = piece[n:]
	}
}

// end notes the reply's end. Clients read a last event without a blank line behind it.
func (r *reply) end(at int64) {
	if r.parsed != nil && r.parsed.Pending() {
		r.line([]byte("\n\n"), at)
	}
	if len(r.events) == 1 && r.lines == 1 { // a response in one piece
		r.events = nil
	}
	r.parsed, r.ended, r.size = nil, true, at
}

// replies decodes a server's side of a connection. headed reports whether the next reply is to a
// HEAD, so that it has no body, whatever its length is. text reads the events of each.
func replies(headed func() bool, text openai.Reader, begun func(*reply)) *messages {
	var r *reply
	m := &messages{}
	m.head = func(lines []string) (int64, error) {
		_, status, ok := strings.Cut(lines[0], " ")
		if !ok || !strings.HasPrefix(lines[0], "HTTP/1.") || len(status) < 3 {
			return 0, errForeign
		}
		if status[0] == '1' {
			return noBody, nil
		}
		r = newReply(text)
		r.begin(lines, status)
		begun(r)
		if headed() || strings.HasPrefix(status, "204") || strings.HasPrefix(status, "304") {
			return 0, nil
		}
		return length(lines, untilClose)
	}
	m.body = func(piece []byte, end int64) error {
		r.body(piece, end)
		return nil
	}
	m.done = func(end int64) { r.end(end) }
	return m
}
