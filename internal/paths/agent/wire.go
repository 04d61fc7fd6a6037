package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// sizes of a line in bytes
const (
	maxOpening = 4 << 10
	maxLine    = 1 << 20
)

const maxSilence = 365 * 24 * time.Hour

// maxText limits texts of the other side, in characters.
const maxText = 500

// Hello is an agent's introduction.
type Hello struct {
	ID       string `json:"id"`   // the argument of Hub.Wait
	Name     string `json:"name"` // its place, such as "container on node b"
	Host     string `json:"host"`
	Kernel   string `json:"kernel"`
	OS       string `json:"os,omitempty"` // the distribution where the agent runs
	Boot     string `json:"boot"`         // the kernel's boot_id, equal for agents on one machine
	Version  string `json:"version"`      // of toll
	CPUs     int    `json:"cpus"`         // usable by the agent
	CPUModel string `json:"cpu_model,omitempty"`
}

// Machine describes the agent's machine as far as it is known: distribution, kernel and CPUs.
func (h Hello) Machine() string {
	facts := []string{"Linux " + h.Kernel, units.Plural(h.CPUs, "CPU")}
	if h.CPUModel != "" {
		facts[1] = fmt.Sprintf("%d × %s", h.CPUs, h.CPUModel)
	}
	if h.OS != "" {
		facts = append([]string{h.OS}, facts...)
	}
	return strings.Join(facts, ", ")
}

// opening is the first message of a connection: a hello on a control connection, a token on a
// process's.
type opening struct {
	Hello *Hello `json:"hello,omitempty"`
	Token string `json:"token,omitempty"`
}

type welcome struct {
	Refused string        `json:"refused,omitempty"`
	Silence time.Duration `json:"silence,omitempty"` // after which the agent ends itself, in ns
}

// request has a number and one other field.
type request struct {
	ID       uint64        `json:"id"`
	Ping     bool          `json:"ping,omitempty"`
	Hush     time.Duration `json:"hush,omitempty"` // in ns
	Clock    bool          `json:"clock,omitempty"`
	Start    *startRequest `json:"start,omitempty"`
	Kill     uint64        `json:"kill,omitempty"` // the process's number
	Meter    *meterRequest `json:"meter,omitempty"`
	Use      uint64        `json:"use,omitempty"` // the metering's number
	Counters []Counter     `json:"counters,omitempty"`
	List     *listRequest  `json:"list,omitempty"`
	Inspect  *Spot         `json:"inspect,omitempty"`
	Route    *netip.Addr   `json:"route,omitempty"` // to this address
	Box      *boxRequest   `json:"box,omitempty"`
	Lay      *layRequest   `json:"lay,omitempty"`
	Cards    string        `json:"cards,omitempty"`
	Knock    *Knock        `json:"knock,omitempty"`
	Lookup   string        `json:"lookup,omitempty"`     // a name
	Proxy    bool          `json:"kube_proxy,omitempty"` // kube-proxy's mode on this node
}

type startRequest struct {
	Number uint64   `json:"number"` // in later requests and notes
	Token  string   `json:"token"`  // begins the connection for input and output
	Args   []string `json:"args"`
	Env    []string `json:"env,omitempty"`
	Apart  bool     `json:"apart,omitempty"`
}

type meterRequest struct {
	Number uint64 `json:"number"`
	From   int64  `json:"from"`
	To     int64  `json:"to,omitempty"`
	PIDs   []int  `json:"pids,omitempty"`
}

type listRequest struct {
	Namespace string `json:"namespace,omitempty"`
	Dir       string `json:"dir,omitempty"` // "": the interfaces of the namespace
}

// answer is the answer to the request with the same number. Without a number it is a note that a
// process ended.
type answer struct {
	ID         uint64            `json:"id,omitempty"`
	Error      string            `json:"error,omitempty"`
	Lacks      string            `json:"lacks,omitempty"`
	Remedy     string            `json:"remedy,omitempty"` // for the missing capability
	None       bool              `json:"none,omitempty"`   // nothing to count
	Clock      int64             `json:"clock,omitempty"`  // CLOCK_MONOTONIC, in ns
	PID        int               `json:"pid,omitempty"`
	Use        *path.Use         `json:"use,omitempty"`
	Counters   []sample.Counters `json:"counters,omitempty"`
	Interfaces []Interface       `json:"interfaces,omitempty"`
	Files      []string          `json:"files,omitempty"`
	Settings   []path.Setting    `json:"settings,omitempty"`
	Way        *link.Route       `json:"way,omitempty"`
	Engine     string            `json:"engine,omitempty"`
	Cards      *cardsAnswer      `json:"cards,omitempty"`
	Addrs      []netip.Addr      `json:"addrs,omitempty"`
	Took       time.Duration     `json:"took,omitempty"` // of the lookup, in ns
	Text       string            `json:"text,omitempty"`
	Exit       *exitNote         `json:"exit,omitempty"`
}

type exitNote struct {
	Number uint64 `json:"number"`
	Error  string `json:"error,omitempty"` // with the end of its standard error; "": success
}

// errNonsense means that the other side violated the protocol.
var errNonsense = errors.New("protocol error")

// parse refuses unknown fields: both sides have the same version.
func parse[T any](line []byte) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, fmt.Errorf("%w: %w", errNonsense, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("%w: more than one value on a line", errNonsense)
	}
	return v, nil
}

func parseOpening(line []byte) (opening, error) {
	o, err := parse[opening](line)
	switch {
	case err != nil:
		return o, err
	case (o.Hello == nil) == (o.Token == ""):
		return o, fmt.Errorf("%w: neither a hello nor a token", errNonsense)
	case o.Hello == nil:
		return o, nil
	}
	h := o.Hello
	for _, s := range []*string{&h.ID, &h.Name, &h.Host, &h.Kernel, &h.OS, &h.Boot, &h.Version,
		&h.CPUModel} {
		*s = clean(*s)
	}
	if h.ID == "" || h.Name == "" {
		return o, fmt.Errorf("%w: a hello without a name", errNonsense)
	}
	return o, nil
}

func parseRequest(line []byte) (request, error) {
	o, err := parse[request](line)
	if err != nil {
		return o, err
	}
	n := 0
	for _, is := range []bool{o.Ping, o.Hush != 0, o.Clock, o.Start != nil, o.Kill != 0,
		o.Meter != nil, o.Use != 0, len(o.Counters) > 0, o.List != nil, o.Inspect != nil,
		o.Route != nil,
		o.Box != nil, o.Cards != "", o.Knock != nil, o.Lookup != "", o.Proxy, o.Lay != nil} {
		if is {
			n++
		}
	}
	switch {
	case o.ID == 0 || n != 1:
		return o, fmt.Errorf("%w: a request has a number and one part", errNonsense)
	case o.Hush < 0 || o.Hush > maxSilence:
		return o, fmt.Errorf("%w: silence for %s", errNonsense, o.Hush)
	case o.Start != nil && (o.Start.Number == 0 || o.Start.Token == "" || len(o.Start.Args) == 0):
		return o, fmt.Errorf("%w: nothing to start", errNonsense)
	case o.Route != nil && !o.Route.IsValid():
		return o, fmt.Errorf("%w: a route to no address", errNonsense)
	case o.Knock != nil && (!o.Knock.To.IsValid() ||
		o.Knock.Proto != "tcp" && o.Knock.Proto != "udp"):
		return o, fmt.Errorf("%w: no address to probe", errNonsense)
	case o.Meter != nil && o.Meter.Number == 0:
		return o, fmt.Errorf("%w: a metering without a number", errNonsense)
	case o.Box != nil:
		return o, o.Box.check()
	case o.Lay != nil:
		return o, o.Lay.check()
	}
	for _, c := range o.Counters {
		if err := c.check(); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (c Counter) check() error {
	n := 0
	for _, is := range []bool{c.Device != nil, c.NAT != nil, c.ESP != nil, c.Proxy != nil} {
		if is {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%w: a counter has one kind", errNonsense)
	}
	return nil
}

func parseAnswer(line []byte) (answer, error) {
	a, err := parse[answer](line)
	if err != nil {
		return a, err
	}
	if (a.ID == 0) == (a.Exit == nil) {
		return a, fmt.Errorf("%w: an answer has a number, a note has none", errNonsense)
	}
	cleanAll(&a.Error, &a.Lacks, &a.Remedy, &a.Engine, &a.Text)
	if a.Exit != nil {
		a.Exit.Error = clean(a.Exit.Error)
	}
	for i := range a.Interfaces {
		x := &a.Interfaces[i]
		cleanAll(&x.Name, &x.Kind, &x.Qdisc, &x.Master)
	}
	if a.Way != nil {
		a.Way.Device = clean(a.Way.Device)
	}
	if a.Cards != nil {
		if err := a.Cards.check(); err != nil {
			return a, err
		}
	}
	for i := range a.Files {
		a.Files[i] = clean(a.Files[i])
	}
	for i := range a.Settings {
		x := &a.Settings[i]
		cleanAll(&x.Where, &x.Of, &x.What, &x.Value)
		if x.Value == "" {
			return a, fmt.Errorf("%w: a setting without a value", errNonsense)
		}
	}
	return a, nil
}

func clean(s string) string { return printable.Words(printable.Limit(s, maxText)) }

func cleanAll(texts ...*string) {
	for _, t := range texts {
		*t = clean(*t)
	}
}

type control struct {
	conn net.Conn
	in   *bufio.Reader

	mu    sync.Mutex
	limit time.Duration
}

// encode refuses a line that the other side would not accept.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if b = append(b, '\n'); len(b) > maxLine {
		return nil, fmt.Errorf("%d bytes, at most %d fit into one message", len(b), maxLine)
	}
	return b, nil
}

// write sends a line. After an error the connection is unusable.
func (c *control) write(line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return err
	}
	_, err := c.conn.Write(line)
	return err
}

func (c *control) send(v any) error {
	line, err := encode(v)
	if err != nil {
		return err
	}
	return c.write(line)
}

func receive(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", errNonsense, most)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Interface is a network device as an agent sees it.
type Interface struct {
	sample.Link      // Where is the agent's name
	Index       int  `json:"index"`
	Up          bool `json:"up"`
	// index of a veth's other end, in its namespace
	Peer   int            `json:"peer,omitempty"`
	Master string         `json:"master,omitempty"` // its bridge
	Addrs  []netip.Prefix `json:"addrs,omitempty"`
	Uplink bool           `json:"uplink,omitempty"` // a default route uses it
}
