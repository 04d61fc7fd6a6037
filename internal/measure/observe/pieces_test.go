package observe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// inPieces returns a model that writes each token in pieces, and notes when it writes the last one.
// Tokens have characters of several bytes.
func inPieces(log *truth, pause time.Duration, pieces func(token string) []string) func(net.Conn) {
	return func(c net.Conn) {
		prompts(c, func(p prompt) error {
			if _, err := io.WriteString(c, streamHead); err != nil {
				return err
			}
			var at []int64
			for i := range p.Tokens {
				time.Sleep(pause)
				all := pieces(fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"é%d 😀\"}}]}\n\n", i))
				for k, piece := range all {
					if k == len(all)-1 {
						at = append(at, time.Now().UnixNano())
					}
					if _, err := io.WriteString(c, piece); err != nil {
						return err
					}
				}
			}
			log.note(p.Seed, at)
			_, err := io.WriteString(c, chunkOf(ending)+"0\r\n\r\n")
			return err
		})
	}
}

// A token may come in any pieces: chunks of a byte, segments that end within a character, comments
// before it and behind it.
func TestPieces(t *testing.T) {
	const n = 12
	number := 0
	for name, pieces := range map[string]func(string) []string{
		"numbered, as by TGI before 1.4.4": func(token string) []string {
			number++
			return []string{chunkOf(strings.Replace(token, "[{", fmt.Sprintf("[{\"index\":%d,", number), 1))}
		},
		"chunks of a byte": func(token string) (out []string) {
			for i := range len(token) {
				out = append(out, chunkOf(token[i:i+1]))
			}
			return out
		},
		"within a character": func(token string) []string {
			whole := chunkOf(token)
			first, last := strings.Index(whole, "é")+1, strings.Index(whole, "😀")+2
			return []string{whole[:first], whole[first:last], whole[last:]}
		},
		"comments between": func(token string) []string {
			return []string{chunkOf(": ping\n\n"), chunkOf(": ping\n\n") + chunkOf(token)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var server truth
			m.serve(t, "127.0.0.1:7001", inPieces(&server, 5*ms, pieces))
			k := follow(t, m, "http://127.0.0.1:7001", n)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e, all := k.visit(u, 1, 2)
				if why, ok := e.Clear(); !ok || e.Tokens != 2*n || e.Matched != 2*n || e.ByID != 2 {
					u.Fatalf("%s: %+v", why, e)
				}
				like(u, e, divided(u, all, &server), 5)
			})
		})
	}
}

// Two gateways in a row: one gathers three tokens, the other one takes its time for each. Both are
// named with their own part.
func TestGatewaysInARow(t *testing.T) {
	const n = 24
	m := newMachine(t)
	var server, inner, outer truth
	m.serve(t, "127.0.0.1:7001", model(&server, steady(10*ms), false))
	a := &gateway{machine: m, to: "127.0.0.1:7001", log: &inner, write: slowly}
	m.serve(t, "127.0.0.1:7002", a.serve)
	b := &gateway{machine: m, to: "127.0.0.1:7002", log: &outer, noID: true, write: inThrees()}
	m.serve(t, "127.0.0.1:7003", b.serve)
	k := follow(t, m, "http://127.0.0.1:7003", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 1, 2)
		if why, ok := e.Clear(); !ok || e.Tokens != 2*n || len(e.Hops) != 3 {
			u.Fatalf("%s: %+v", why, e)
		}
		like(u, e, divided(u, all, &server, &inner, &outer), 5)
		if a, b := e.Parts[4].Last, e.Parts[5].Last; a < 0.150 || b > a/4 {
			u.Errorf("the inner one holds %v s, the outer one %v", a, b)
		}
	})
}

// An address of a link has a zone, which its packets do not have.
func TestLinkLocal(t *testing.T) {
	const n = 12
	client, other := joined(t)
	at := ""
	testwait.Until(t, patience, "the server's address may be used", func() bool {
		err := other.Do(func() error {
			eth0, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			addrs, err := eth0.Addrs()
			for _, a := range addrs {
				if p, ok := a.(*net.IPNet); ok && p.IP.IsLinkLocalUnicast() {
					at = p.IP.String()
				}
			}
			if at == "" || err != nil {
				return errors.Join(errors.New("no address"), err)
			}
			l, err := net.Listen("tcp", "["+at+"%eth0]:0")
			if err == nil {
				err = l.Close()
			}
			return err
		})
		return err == nil
	})
	var server truth
	other.serve(t, "["+at+"%eth0]:7001", model(&server, steady(5*ms), false))
	testwait.Until(t, patience, "the client's address may be used", func() bool {
		c, _, err := client.dial(t.Context(), "tcp", "["+at+"%eth0]:7001")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	k := follow(t, client, "http://["+at+"%25eth0]:7001", n)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		e, all := k.visit(u, 2, 2)
		if why, ok := e.Clear(); !ok || e.Matched != 4*n || len(e.Hops) != 1 || e.Hops[0].Process == "" {
			u.Fatalf("%s: %+v", why, e)
		}
		like(u, e, divided(u, all, &server), 5)
	})
}
