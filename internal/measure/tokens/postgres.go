package tokens

import (
	"encoding/binary"
	"slices"
	"strings"
)

// postgres is PostgreSQL's protocol, version 3. A request ends with a query or Sync, its reply with
// ReadyForQuery.
type postgres struct {
	counted
	asks     bool
	starts   bool // a message without a type is next
	refuses  bool // a byte may be next that refuses encryption
	head     []byte
	kind     byte
	executes int
	start    int64     // of the next request or reply
	empty    bool      // nothing of it has come but Flush
	copies   bool      // data of a COPY have come since the last request, or a reply asks for them
	answers  *postgres // of the requests
	of       *postgres // the requests, of answers
	joins    bool      // the first reply is to a COPY that is older than the log
}

// newPostgres returns a framer of requests with one of their replies. starts means that the
// connection begins.
func newPostgres(starts bool) *postgres {
	p := &postgres{asks: true, starts: starts, empty: true, answers: &postgres{}}
	p.end, p.answers.end, p.answers.of = p.ended, p.answers.ended, p
	return p
}

const (
	postgresAsks    = "BCDEFHPQSXcdfp"
	postgresAnswers = "123ACDEGHIKNRSTVWZcdnstv"
	version3        = 3 << 16
	askTLS, askGSS  = 80877103, 80877104
)

// postgresStart returns the code of a message without a type; 0: it is none.
func postgresStart(b []byte) uint32 {
	code := binary.BigEndian.Uint32(b[4:])
	if code>>16 == version3>>16 || code == askTLS || code == askGSS {
		return code
	}
	return 0
}

// arePostgres reports whether bytes are requests, the last of which may go on.
func arePostgres(b []byte) bool {
	const head, longest = 5, 1 << 20
	for n := 0; ; n++ {
		if len(b) < head {
			return n > 0 && len(b) == 0
		}
		size := postgresLength(b)
		if strings.IndexByte(postgresAsks, b[0]) < 0 || size < 0 || size >= longest {
			return false
		}
		if size >= int64(len(b)-head) {
			return true
		}
		b = b[head+size:]
	}
}

// postgresLength returns the length of a message behind its header.
func postgresLength(b []byte) int64 { return int64(binary.BigEndian.Uint32(b[1:])) - 4 }

func (p *postgres) feed(b []byte) {
	for b = p.take(b); len(b) > 0 && !p.failed; b = p.take(b) {
		p.head, p.at, b = append(p.head, b[0]), p.at+1, b[1:]
		p.header()
	}
}

func (p *postgres) header() {
	switch {
	case p.refuses:
		p.refuses, p.failed = false, p.head[0] != 'N'
		p.head = p.head[:0]
	case p.starts && len(p.head) == 8:
		p.kind = 0
		switch code := postgresStart(p.head); code {
		case askTLS, askGSS:
			p.answers.refuses = true
		case 0:
			p.failed = true
		default:
			p.starts, p.left = false, int64(binary.BigEndian.Uint32(p.head))-8
		}
		if p.head = p.head[:0]; p.left < 0 {
			p.failed = true
		}
	case !p.starts && len(p.head) == 5:
		all := postgresAnswers
		if p.asks {
			all = postgresAsks
		}
		p.kind, p.left = p.head[0], postgresLength(p.head)
		if p.head = p.head[:0]; p.left < 0 || strings.IndexByte(all, p.kind) < 0 {
			p.failed = true
		} else if p.left == 0 {
			p.ended()
		}
	}
}

func (p *postgres) ended() {
	switch {
	case !p.asks:
		p.answered()
	case p.kind == 0:
		p.frames = append(p.frames, frame{end: p.at, login: true})
	case p.empty && strings.IndexByte("Hcdfp", p.kind) >= 0:
		p.start = p.at // it belongs to the request before, or is psycopg's Flush behind Sync
		p.copies = p.copies || strings.IndexByte("cdf", p.kind) >= 0
	case p.answers.joins && p.kind == 'S' && p.empty:
		p.start = p.at
	case strings.IndexByte("QFS", p.kind) >= 0:
		p.frames = append(p.frames, frame{start: p.start, end: p.at, several: p.executes > 1,
			sync: p.kind == 'S', copied: p.kind == 'S' && p.empty && p.copies})
		p.executes, p.empty, p.copies = 0, true, false
		p.ignore()
	default:
		if p.empty = false; p.kind == 'E' {
			p.executes++
		}
	}
}

// answered handles the end of a message of a reply.
func (p *postgres) answered() {
	asked := !p.of.empty || len(p.of.frames) > len(p.frames)
	switch {
	case p.kind == 'W' || p.joins && p.kind == 'd': // replication
		p.failed, p.twoWay = true, true
	case p.kind == 'G': // the server copies in
		p.copies = true
		p.of.ignore()
	case p.kind == 'Z' && p.joins:
		p.start, p.joins = p.at, false
	case p.kind == 'Z':
		p.frames, p.copies = append(p.frames, frame{start: p.start, end: p.at}), false
	case !asked: // a notification, a notice or a setting
		p.start = p.at
	}
}

// ignore removes the Sync behind the data of a COPY from the requests. The server ignored the one before
// the data, and answers them together.
func (p *postgres) ignore() {
	n := len(p.answers.frames) + 1
	if !p.answers.copies || n >= len(p.frames) || !p.frames[n-1].sync || !p.frames[n].copied {
		return
	}
	end := p.frames[n].end
	if p.frames = slices.Delete(p.frames, n, n+1); n < len(p.frames) {
		p.frames[n].start = max(p.frames[n].start, end)
	} else {
		p.start = max(p.start, end)
	}
}
