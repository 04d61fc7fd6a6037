package agent

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestOpenings(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"hello":{"id":"b","name":"node b","version":"1"}}`, ""},
		{`{"token":"0123"}`, ""},
		{`{}`, "protocol error: neither a hello nor a token"},
		{`{"hello":{"id":"b","name":"n"},"token":"x"}`, "protocol error: neither a hello nor " +
			"a token"},
		{`{"hello":{"name":"n"}}`, "protocol error: a hello without a name"},
		{`{"hello":{"id":"b","name":"n","more":1}}`, `protocol error: json: unknown field "more"`},
		{`{"token":"x"} {"token":"y"}`, "protocol error: more than one value on a line"},
		{`GET / HTTP/1.1`, "protocol error: invalid character 'G' looking for beginning of value"},
		{``, "protocol error: EOF"},
	} {
		_, err := parseOpening([]byte(c.line))
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.line, err, c.want)
		}
	}
	o, err := parseOpening([]byte(`{"hello":{"id":"b\u001b[31m","name":"` +
		strings.Repeat("é", 1000) + `"}}`))
	if err != nil || o.Hello.ID != `b\x1b[31m` || o.Hello.Name != strings.Repeat("é", maxText) {
		t.Errorf("%+v, %v", o.Hello, err)
	}
}

func TestRequests(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"id":1,"ping":true}`, ""},
		{`{"id":1,"start":{"number":2,"token":"x","args":["worker"]}}`, ""},
		{`{"id":1,"counters":[{"device":{"name":"lo"}}]}`, ""},
		{`{"id":1,"inspect":{"where":"node b"}}`, ""},
		{`{"id":1,"inspect":{"where":"node b"},"list":{}}`, "protocol error: a request has a " +
			"number and one part"},
		{`{"id":1,"inspect":{"where":"node b","rules":1}}`,
			`protocol error: json: unknown field "rules"`},
		{`{"ping":true}`, "protocol error: a request has a number and one part"},
		{`{"id":1}`, "protocol error: a request has a number and one part"},
		{`{"id":1,"ping":true,"clock":true}`, "protocol error: a request has a number and one " +
			"part"},
		{`{"id":1,"hush":100000000000000}`, ""}, // more than a day
		{`{"id":1,"hush":-5}`, "protocol error: silence for -5ns"},
		{`{"id":1,"hush":99999999999999999}`, "protocol error: silence for " +
			"27777h46m39.999999999s"},
		{`{"id":1,"start":{"number":2,"token":"x"}}`, "protocol error: nothing to start"},
		{`{"id":1,"meter":{"from":1}}`, "protocol error: a metering without a number"},
		{`{"id":1,"box":{"make":{"number":2,"id":"x","name":"client","network":""}}}`, ""},
		{`{"id":1,"box":{"ready":true}}`, ""},
		{`{"id":1,"box":{}}`, "protocol error: a request to an engine has one part, and a box " +
			"has a number, an ID and a name"},
		{`{"id":1,"box":{"ready":true,"clear":true}}`, "protocol error: a request to an " +
			"engine has one part, and a box has a number, an ID and a name"},
		{`{"id":1,"box":{"make":{"number":2,"id":"x","network":"host"}}}`,
			"protocol error: a request to an engine has one part, and a box has a number, an " +
				"ID and a name"},
		{`{"id":1,"counters":[{}]}`, "protocol error: a counter has one kind"},
		{`{"id":1,"counters":[{"device":{"name":"lo"},"esp":{"client":"::1","server":"::1"}}]}`,
			"protocol error: a counter has one kind"},
	} {
		_, err := parseRequest([]byte(c.line))
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.line, err, c.want)
		}
	}
}

func TestAnswersOfSettings(t *testing.T) {
	a, err := parseAnswer(
		[]byte(`{"id":1,"settings":[{"where":"x\n","of":"eth\u001b[2J","what":"MTU","value":"` +
			strings.Repeat("9", 2*maxText) + `"}]}`))
	want := []path.Setting{{Where: "x", Of: `eth\x1b[2J`, What: "MTU",
		Value: strings.Repeat("9", maxText)}}
	if err != nil || !slices.Equal(a.Settings, want) {
		t.Errorf("%+v, %v", a.Settings, err)
	}
	for _, bad := range []string{`{"of":"eth0","what":"MTU"}`, `null`, `{"value":"1","more":1}`,
		`7`} {
		if a, err := parseAnswer([]byte(`{"id":1,"settings":[` + bad + `]}`)); !errors.Is(err,
			errNonsense) {
			t.Errorf("%s: %+v, %v", bad, a.Settings, err)
		}
	}
}

func TestAnswersOfCards(t *testing.T) {
	a, err := parseAnswer(
		[]byte(`{"id":1,"cards":{"all":[{"name":"eth\u001b[2J","where":"x\n","driver":"` +
			strings.Repeat("d", 2*maxText) +
			`","interrupts":[{"number":1,"name":"a\u202e","cpus":"0"}],"rps":{"rx\u001b":"f"},"speed_bit_per_s":10000000000}],"crossed":["eth\u001b[2J"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := a.Cards.All[0]
	if c.Name != `eth\x1b[2J` || c.Where != `x\n` || len(c.Driver) != maxText ||
		c.Interrupts[0].Name != `a\u202e` || c.RPS[`rx\x1b`] != "f" ||
		a.Cards.Crossed[0] != c.Name {
		t.Errorf("%+v, crossed %q", c, a.Cards.Crossed)
	}
	many := strings.Repeat(`{"number":1},`, sample.MaxInterrupts) + `{"number":1}`
	for _, bad := range []string{`{"crossed":["eth0"]}`,
		`{"all":[{"speed_bit_per_s":100000000000001}]}`, `{"all":[{"interrupts":[` + many + `]}]}`,
		`{"all":[{"more":1}]}`, `7`,
		`{"all":[` + strings.Repeat(`{},`, maxCards) + `{}]}`} {
		if a, err := parseAnswer([]byte(`{"id":1,"cards":` + bad + `}`)); !errors.Is(err,
			errNonsense) {
			t.Errorf("%.40s: %+v, %v", bad, a.Cards, err)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	in := bufio.NewReader(io.LimitReader(endless{}, 1<<30))
	if _, err := receive(in, 100); !errors.Is(err, errNonsense) {
		t.Errorf("an endless line: %v", err)
	}
	in = bufio.NewReader(strings.NewReader(strings.Repeat("x", 9000) + "\nrest\n"))
	if l, err := receive(in, 10000); err != nil || len(l) != 9001 {
		t.Errorf("%d bytes, %v", len(l), err)
	}
	if l, err := receive(in, 10); err != nil || string(l) != "rest\n" {
		t.Errorf("%q, %v", l, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// Each side understands the other's messages, and malformed ones do no harm.
func FuzzWire(f *testing.F) {
	for _, v := range []any{
		opening{Hello: &Hello{ID: "b", Name: "node b", Host: "h", Kernel: "6.1", Version: "1",
			CPUs: 2,
			OS:   "Debian GNU/Linux 12 (bookworm)", CPUModel: "Intel Xeon"}},
		opening{Token: "00ff"},
		request{ID: 1, Ping: true}, request{ID: 2, Hush: time.Second}, request{ID: 3, Kill: 7},
		request{ID: 4, Use: 9},
		request{ID: 5, Start: &startRequest{1, "t", []string{"worker"}, []string{"A=b"}, true}},
		request{ID: 6, Meter: &meterRequest{1, 2, 3, []int{4}}},
		request{ID: 7, Counters: []Counter{{Device: &Device{Name: "lo"}}, {NAT: &NAT{Proto: "tcp"}},
			{ESP: &ESP{}}, {Proxy: &Proxy{PID: 1}}}},
		request{ID: 8, List: &listRequest{Dir: "/"}},
		request{ID: 9, Inspect: &Spot{Namespace: "/netns/1-ab", Where: "w",
			Devices: []string{"eth0"}, To: []netip.Addr{netip.IPv6Loopback()}}},
		answer{ID: 3, Settings: []path.Setting{
			{Of: "eth0", What: "XDP", Value: "program 1", Diverts: true}}},
		request{ID: 10, Cards: "eth0"}, answer{
			ID: 4, Cards: &cardsAnswer{All: []sample.Card{{Name: "eth0"}},
				Crossed: []string{"eth0"}}},
		answer{ID: 1, Clock: 5}, answer{Exit: &exitNote{3, "signal: killed"}},
		answer{ID: 2, Error: "e", Lacks: capNet},
		welcome{Silence: time.Second},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, '\n'))
	}
	f.Add([]byte(`{"id":1,"counters":[null]}`))
	f.Add([]byte("\x16\x03\x01\x02\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		line, err := receive(bufio.NewReaderSize(bytes.NewReader(b), 16), maxOpening)
		if len(line) > maxOpening {
			t.Fatalf("a line of %d bytes", len(line))
		}
		if err != nil {
			line = b
		}
		if o, err := parseOpening(line); err == nil && o.Hello != nil {
			for _, s := range []string{o.Hello.ID, o.Hello.Name, o.Hello.Host, o.Hello.Version} {
				if strings.ContainsAny(s, "\n\x1b\x00") {
					t.Errorf("%q may be printed", s)
				}
			}
		}
		if o, err := parseRequest(line); err == nil {
			again, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseRequest(again); err != nil {
				t.Errorf("%s was understood, and %s is not: %v", line, again, err)
			}
		}
		if a, err := parseAnswer(line); err == nil {
			said := a.Error + a.Lacks
			for _, s := range a.Settings {
				said += s.Where + s.Of + s.What + s.Value
				if s.Value == "" {
					t.Errorf("%+v would be taken for one that is not there", s)
				}
			}
			if strings.ContainsAny(said, "\n\x1b") {
				t.Errorf("%q may be printed", said)
			}
		}
		_, _ = parse[welcome](line)
	})
}

func FuzzBundle(f *testing.F) {
	k, err := NewKey()
	if err != nil {
		f.Fatal(err)
	}
	b := k.Bundle()
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(bytes.ReplaceAll(b, []byte("CERTIFICATE"), []byte("PRIVATE KEY")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := openBundle(b); err == nil &&
			(len(c.Certificates) != 1 || c.RootCAs == nil || c.ServerName != hubName) {
			t.Errorf("a bundle gives %+v", c)
		}
	})
}

// knock dials the hub with the agents' side of a key, and sends a line.
func knock(t *testing.T, h *Hub, k *Key, line string, change func(*tls.Config)) (*tls.Conn, error) {
	t.Helper()
	c, err := openBundle(k.Bundle())
	check(t, err)
	if change != nil {
		change(c)
	}
	raw, err := net.Dial("tcp", h.Addr().String())
	check(t, err)
	t.Cleanup(func() { raw.Close() })
	check(t, raw.SetDeadline(time.Now().Add(testTime)))
	conn := tls.Client(raw, c)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	_, err = conn.Write([]byte(line))
	return conn, err
}

func here(t *testing.T) (*Hub, *Key) {
	t.Helper()
	k, err := NewKey()
	check(t, err)
	h, err := Listen(loopback, k, testVersion)
	check(t, err)
	t.Cleanup(func() { check(t, h.Close()) })
	return h, k
}

const goodHello = `{"hello":{"id":"b","name":"node b","version":"` + testVersion + `"}}` + "\n"

// Both sides must prove their role with the run's key, by TLS 1.3 only.
func TestHandshake(t *testing.T) {
	h, k := here(t)
	other, err := NewKey()
	check(t, err)
	trusting := func(c *tls.Config) { c.InsecureSkipVerify = true }
	for _, c := range []struct {
		name   string
		key    *Key
		change func(*tls.Config)
		ok     bool
	}{
		{"own", k, nil, true},
		{"own-trusting", k, trusting, true},
		{"none", k, func(c *tls.Config) { c.Certificates = nil }, false},
		{"other", other, trusting, false},
		{"other-hub", other, nil, false},
		{"hubs-own", k, func(c *tls.Config) { c.Certificates = []tls.Certificate{k.own} }, false},
		{"tls12", k, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		}, false},
		{"other-protocol", k, func(c *tls.Config) { c.NextProtos = []string{"h2"} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := knock(t, h, c.key, goodHello, c.change)
			if err == nil { // the client's error; the server's comes with the first reading
				_, err = bufio.NewReader(conn).ReadBytes('\n')
			}
			if (err == nil) != c.ok {
				t.Errorf("the handshake: %v", err)
			}
			var a *Agent
			if c.ok { // before it leaves
				a, err = h.Wait(bounded(t), "b")
				check(t, err)
			}
			if conn != nil {
				conn.Close()
			}
			if a != nil { // the next may come
				<-a.Lost()
			}
		})
	}
	c, err := openBundle(k.Bundle())
	check(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: c.Certificates, NextProtos: []string{protocol}})
	check(t, err)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	check(t, err)
	defer raw.Close()
	err = tls.Client(raw, c).Handshake()
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); !is {
		t.Errorf("an agent took another one for the hub: %v", err)
	}
}

// A key is valid while its hub listens, whatever the machines' clocks.
func TestKeysDoNotAge(t *testing.T) {
	for name, made := range map[string]time.Time{"long-ago": time.Now().AddDate(-20, 0, 0),
		"not-yet": time.Now().AddDate(20, 0, 0)} {
		t.Run(name, func(t *testing.T) {
			k, err := newKey(made)
			check(t, err)
			h, err := Listen(loopback, k, testVersion)
			check(t, err)
			defer func() { check(t, h.Close()) }()
			conn, err := knock(t, h, k, goodHello, nil)
			check(t, err)
			if _, err := bufio.NewReader(conn).ReadBytes('\n'); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every connection must show its key, without session resumption.
func TestNoTickets(t *testing.T) {
	h, k := here(t)
	cache := tls.NewLRUClientSessionCache(4)
	for range 2 {
		conn, err := knock(t, h, k, goodHello, func(c *tls.Config) { c.ClientSessionCache = cache })
		check(t, err)
		if _, err := bufio.NewReader(conn).ReadBytes('\n'); err != nil {
			t.Fatal(err)
		}
		if conn.ConnectionState().DidResume {
			t.Error("a session was taken up again")
		}
		a, err := h.Wait(bounded(t), "b")
		check(t, err)
		conn.Close()
		<-a.Lost()
	}
}

// A token becomes valid when it is issued, for one connection.
func TestTokensAreUsedOnce(t *testing.T) {
	h, k := here(t)
	expected, err := h.expect()
	check(t, err)
	token, came := expected.token, expected.came
	for _, line := range []string{`{"token":"` + strings.Repeat("0", len(token)) + `"}`,
		`{"token":"` + token + `"}`, `{"token":"` + token + `"}`} {
		conn, err := knock(t, h, k, line+"\n", nil)
		check(t, err)
		if strings.Contains(line, token) && came != nil {
			s := <-came
			_, err := s.conn.Write([]byte("in"))
			check(t, err)
			if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil {
				t.Error(err)
			}
			came = nil
			continue
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s was taken", line)
		}
	}
	expected.forget()
}

// An agent that breaks the protocol is lost with an error about it.
func TestGarbage(t *testing.T) {
	for name, says := range map[string]string{
		"text":    "hello\n",
		"unknown": `{"id":1,"what":2}` + "\n",
		"both":    `{"id":1,"exit":{"number":1}}` + "\n",
		"endless": strings.Repeat("x", 2*maxLine), "half": `{"id":1`,
	} {
		t.Run(name, func(t *testing.T) {
			h, k := here(t)
			conn, err := knock(t, h, k, goodHello, nil)
			check(t, err)
			a, err := h.Wait(bounded(t), "b")
			check(t, err)
			go func() {
				_, _ = conn.Write([]byte(says))
				if name == "half" {
					conn.Close()
				}
			}()
			asked := make(chan error, 1)
			go func() {
				_, err := a.Files(bounded(t), "/")
				asked <- err
			}()
			<-a.Lost()
			if _, is := errors.AsType[*leftError](<-asked); !is {
				t.Error("the request goes on, or ended otherwise")
			}
			if name != "half" && !errors.Is(a.Err(), errNonsense) {
				t.Errorf("it says %v", a.Err())
			}
		})
	}
}

// Unrequested answers and notes of unknown processes have no effect.
func TestStrayAnswers(t *testing.T) {
	h, k := here(t)
	conn, err := knock(t, h, k, goodHello, nil)
	check(t, err)
	a, err := h.Wait(bounded(t), "b")
	check(t, err)
	_, err = conn.Write([]byte(`{"id":77,"clock":1}` + "\n" + `{"exit":{"number":78}}` + "\n"))
	check(t, err)
	in := bufio.NewReader(conn)
	go func() { // answers every request as if it were a ping
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			if o, err := parseRequest(line); err == nil {
				b, _ := json.Marshal(answer{ID: o.ID})
				_, _ = conn.Write(append(b, '\n'))
			}
		}
	}()
	if _, err := a.Files(bounded(t), "/"); err != nil {
		t.Error(err)
	}
	// Missing parts of an answer must not be made up.
	if _, err := a.Counters(bounded(t), []Counter{{Device: &Device{Name: "lo"}}}); err == nil ||
		err.Error() != "node b: 1 counters were requested, 0 returned" {
		t.Error(err)
	}
	if use, err := a.Meter(bounded(t), 1, 2); err != nil {
		t.Error(err)
	} else if _, err := use(bounded(t)); err == nil {
		t.Error("a reading that did not come is one")
	}
}

func TestHelloMachine(t *testing.T) {
	for _, tt := range []struct {
		hello Hello
		want  string
	}{
		{Hello{Kernel: "6.1", CPUs: 1}, "Linux 6.1, 1 CPU"},
		{Hello{Kernel: "6.1", CPUs: 2,
			OS: "Debian GNU/Linux 12 (bookworm)", CPUModel: "Intel Xeon"},
			"Debian GNU/Linux 12 (bookworm), Linux 6.1, 2 × Intel Xeon"},
	} {
		if got := tt.hello.Machine(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
