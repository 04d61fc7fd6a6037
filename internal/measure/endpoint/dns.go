package endpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// errLost means that a query had no reply.
var errLost = fmt.Errorf("no reply within %v", queryTimeout)

const (
	// queryTimeout is how long a query waits for its reply.
	queryTimeout = 2 * time.Second
	// mostUnanswered is the number of lost queries, without a reply to any, that is a failure.
	mostUnanswered = 3
)

// resolver is a client of DNS over UDP.
type resolver struct {
	wire
	query []byte // without a number
	asks  string
}

// recordTypes are the types of records that a URL may name.
var recordTypes = map[string]dnsmessage.Type{"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA,
	"CNAME": dnsmessage.TypeCNAME, "MX": dnsmessage.TypeMX, "NS": dnsmessage.TypeNS,
	"PTR": dnsmessage.TypePTR, "SOA": dnsmessage.TypeSOA, "SRV": dnsmessage.TypeSRV,
	"TXT": dnsmessage.TypeTXT}

// newResolver returns the client of dns://HOST[:PORT]/NAME[?type=A], whose type is A by default.
func newResolver(a Address, u *url.URL) (speaker, error) {
	name := strings.TrimPrefix(u.Path, "/")
	if name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("which name to ask for? dns://%s/example.org", printable.Line(u.Host))
	}
	word := "A"
	for key, values := range u.Query() {
		if word = strings.ToUpper(values[0]); key != "type" {
			return nil, fmt.Errorf("%.20q is no option of dns://, only type is, as in ?type=AAAA", key)
		}
	}
	kind, ok := recordTypes[word]
	if !ok {
		return nil, fmt.Errorf("%.20q is no type of records that toll asks for", word)
	}
	full, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	var query []byte
	if err == nil {
		m := dnsmessage.Message{Header: dnsmessage.Header{RecursionDesired: true},
			Questions: []dnsmessage.Question{{Name: full, Type: kind, Class: dnsmessage.ClassINET}}}
		query, err = m.Pack()
	}
	if err != nil {
		return nil, fmt.Errorf("%.80q is not a name of DNS", printable.Line(name))
	}
	return &resolver{wire{withPort(u, "53"), a.dialler()}, query,
		word + " " + printable.Line(name)}, nil
}

func (r *resolver) words() string { return r.asks }

func (r *resolver) open(ctx context.Context) (*dialogue, error) {
	raw, _, err := r.connect(ctx, "udp", r.host)
	if err != nil {
		return nil, err
	}
	udp, ok := raw.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(errors.New("no UDP socket"), raw.Close())
	}
	c, err := blocking(raw, udp, queryTimeout)
	if err != nil {
		return nil, err
	}
	query, number := slices.Clone(r.query), uint16(rand.Uint32())
	t := dialogueOn(c, udp.LocalAddr().(*net.UDPAddr).AddrPort())
	t.replies.Errors = map[string]int{}
	reply := make([]byte, 64<<10)
	t.ask = func(ctx context.Context) error {
		number++
		binary.BigEndian.PutUint16(query, number)
		code, err := c.resolve(ctx, query, reply)
		switch {
		case errors.Is(err, errLost):
			t.replies.Unanswered++
		case errors.Is(err, unix.ECONNREFUSED):
			at, _ := netip.ParseAddrPort(t.remote)
			err = &refusedError{at: at}
		case code != "":
			t.replies.Errors[code]++
		}
		return err
	}
	return t, nil
}

// resolve sends a query and waits for the reply with its number. It returns the reply's error, such
// as SERVFAIL, or "".
func (p plain) resolve(ctx context.Context, query, reply []byte) (code string, err error) {
	if _, err := p.Write(query); err != nil {
		return "", err
	}
	const least, isReply = 12, 0x80 // bytes of a header; a bit of its third one
	for sent := time.Now(); time.Since(sent) < queryTimeout; {
		n, err := unix.Read(p.fd, reply)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return "", errLost
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case n >= least && [2]byte(reply) == [2]byte(query) && reply[2]&isReply != 0:
			return tokens.CodeOf(int(reply[3] & 0xf)), nil
		}
	}
	return "", errLost
}

// noteReplies records in v how requests were answered. errors is the beginning of the names of
// errors' counts.
func noteReplies(v *sample.Visit, r tokens.Replies, errors string) {
	if r.Unanswered == 0 && len(r.Errors) == 0 {
		return
	}
	if v.Client.Counts == nil {
		v.Client.Counts = map[string]int64{}
	}
	v.Client.Counts[workload.CountUnanswered] += int64(r.Unanswered)
	for code, n := range r.Errors {
		v.Client.Counts[errors+code] += int64(n)
	}
}
