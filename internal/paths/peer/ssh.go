package peer

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// boot is the script that a POSIX shell on the peer runs. It is one compound command, so the shell
// reads all of it before it executes any part, and leaves the rest of the input to its children.
//
//go:embed boot.sh
var boot string

const (
	// answerLimit limits the wait for the peer's next message: logging in and starting a shell or
	// toll may be slow.
	answerLimit = 60 * time.Second
	// stalled limits the time in which a copy to the peer makes no progress.
	stalled = 60 * time.Second
	// endLimit limits the wait for the end of ssh after the agent has exited.
	endLimit = 3 * time.Second
	// noise is the most bytes that a shell may print before it runs the command.
	noise = 1 << 20
)

type connection struct {
	host    Host
	name    string // the agent's name in reports
	process *path.Process
	ended   chan struct{}
	err     error         // how ssh ended
	in      *bufio.Reader // the peer's output
	mark    string
	seen    have
	carrier *agent.Carrier
	limit   time.Duration // for the peer's next message
}

// have is what the peer reports about itself.
type have struct {
	System, Machine string         // uname -s and -m
	Sum             string         // SHA-256 of its toll, in hex; "": none
	User            string         // the user's name in sudoers
	Here, There     netip.AddrPort // ssh's connection as the peer sees it; invalid: unknown
}

// dial starts an agent on the peer and sends it the bundle.
func (p *Peer) dial(ctx context.Context, here *netns.NS, bundle []byte) (*connection, error) {
	return p.shell(ctx, here, func(c *connection) error {
		if err := c.prepare(p, bundle); err != nil {
			return err
		}
		return c.carry()
	})
}

// shell starts a shell on the peer and talks to it. After an error nothing is left of the
// connection.
func (p *Peer) shell(ctx context.Context, here *netns.NS,
	talk func(*connection) error) (*connection, error) {
	run := append(slices.Clone(p.SSH), p.Host.args("sh")...)
	if len(p.SSH) == 0 {
		run = append([]string{"ssh"}, run...)
	}
	program, err := exec.LookPath(run[0])
	if err != nil {
		return nil,
			&machine.UnsupportedError{
				Missing: "ssh is not installed here, and toll needs it to reach the peer",
				Remedy:  remedy.Install("openssh-client"), Err: err}
	}
	c, err := newConnection(p.Host)
	if err != nil {
		return nil, err
	}
	return c, c.open(ctx, here, exec.Command(program, run[1:]...),
		func() error { return talk(c) })
}

// beside starts an agent on this machine, which needs no ssh.
func (p *Peer) beside(ctx context.Context, here *netns.NS, bundle []byte) (*connection, error) {
	c, err := newConnection(p.Host)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(local.Self, agent.Arg, "--stdio", c.mark)
	cmd.Args[0] = os.Args[0]
	return c, c.open(ctx, here, cmd, func() error {
		if err := c.introduce(bundle); err != nil {
			return err
		}
		return c.carry()
	})
}

func newConnection(h Host) (*connection, error) {
	mark := make([]byte, 16) //nolint:mnd // bytes, enough that no banner contains the same ones
	if _, err := rand.Read(mark); err != nil {
		return nil, err
	}
	return &connection{host: h, name: h.agentName(), ended: make(chan struct{}),
		mark: "bridgetoll-" + hex.EncodeToString(mark), limit: answerLimit}, nil
}

// open starts a program and talks to its other end.
func (c *connection) open(ctx context.Context, here *netns.NS, cmd *exec.Cmd,
	talk func() error) (err error) {
	said := local.Keep(cmd)
	cmd.WaitDelay = endLimit // a master connection of the user's may keep standard error open
	if c.process, err = local.Start(here, "ssh", cmd, said); err != nil {
		return err
	}
	go func() { c.err = c.process.Wait(); close(c.ended) }()
	defer func() {
		if err != nil {
			err = c.explain(ctx, err)
			c.kill() // the shell there then reads the end of its input, and removes a partial copy
			err = errors.Join(err, c.close())
		}
	}()
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	c.in = bufio.NewReader(c.process.Out)
	return talk()
}

// carry carries the agent's connections from now on.
func (c *connection) carry() (err error) {
	c.carrier, err = agent.AtHub(stdio{c.in, c.process})
	return err
}

// stdio combines ssh's standard input and output into one stream.
type stdio struct {
	io.Reader
	process *path.Process
}

func (s stdio) Write(b []byte) (int, error) { return s.process.In.Write(b) }
func (s stdio) Close() error {
	return errors.Join(s.process.In.Close(), s.process.Out.Close())
}

// meet runs boot on the peer and reads what it has.
func (c *connection) meet(p *Peer) error {
	sudo := "''"
	if p.Sudo {
		sudo = "'sudo -n --'"
	}
	if err := c.say(strings.NewReplacer("MARK", c.mark, "SUDO", sudo).Replace(boot)); err != nil {
		return err
	}
	_, words, err := c.hear("have")
	if err != nil {
		return err
	}
	c.seen, err = parseHave(words)
	return err
}

func (c *connection) prepare(p *Peer, bundle []byte) error {
	if err := c.meet(p); err != nil {
		return err
	}
	file, err := p.program(c.seen)
	if err != nil {
		return err
	}
	if file == "" {
		err = c.say("use\n")
	} else {
		err = c.copy(file)
	}
	if err != nil {
		return err
	}
	return c.introduce(bundle)
}

func (c *connection) introduce(bundle []byte) error {
	if _, _, err := c.hear("agent"); err != nil {
		return err
	}
	return c.say(string(agent.Introduce(bundle, c.name)))
}

func otherMachine(h have) error {
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the peer is %s, this toll is for %s", printable.Words(h.Machine), runtime.GOARCH),
		Remedy: "--peer-binary with a toll of this version for it: GOOS=linux GOARCH=… make build; or install this version there as toll"}
}

func (c *connection) say(text string) error {
	if _, err := io.WriteString(c.process.In, text); err != nil {
		return fmt.Errorf("speak to its shell: %w", err)
	}
	return nil
}

// errSilent means that the peer took too long, or printed too much else.
var errSilent = errors.New("it sent no valid reply")

// hear waits for toll's line that begins with one of words, and returns this word and the rest. It
// skips other output, such as a shell's greeting.
func (c *connection) hear(words ...string) (word, rest string, err error) {
	late := time.AfterFunc(c.limit, c.kill)
	defer late.Stop()
	defer exchange.Waiting("ssh to " + c.host.String())()
	fail := &machine.UnsupportedError{
		Remedy: "a directory there in which programs may be run, with room for toll: TMPDIR"}
	var before string
	for heard := 0; heard < noise; {
		line, err := c.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		heard += len(line)
		got, rest, ours := said(c.mark, string(line))
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				return "", "", err
			}
			if !late.Stop() {
				return "", "", fmt.Errorf("%w within %s%s", errSilent, c.limit, quoted(before))
			}
			return "", "", fmt.Errorf("the connection ended%s: %w", quoted(before), io.ErrUnexpectedEOF)
		case !ours:
			before = cmp.Or(printable.Words(printable.Limit(strings.TrimSpace(string(line)), 200)), before) //nolint:mnd // characters
		case slices.Contains(words, got):
			return got, rest, nil
		case got == "fail" && rest == "place":
			fail.Missing = "the peer has no directory in which toll may write and run a program (TMPDIR, /tmp, /var/tmp, XDG_RUNTIME_DIR, HOME)"
			return "", "", fail
		case got == "fail":
			fail.Missing = "the copy of toll on the peer is incomplete: the disk there is full, or the connection was cut"
			return "", "", fail
		}
	}
	return "", "", &machine.UnsupportedError{Missing: fmt.Sprintf(
		"%s: %v in %d bytes%s", c.host, errSilent, noise, quoted(before)),
		Remedy: c.host.needsShell()}
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(" (the last line that it sent: %s)", s)
}

func said(mark, line string) (word, rest string, ours bool) {
	line, ours = strings.CutPrefix(strings.TrimRight(line, "\r\n"), mark+" ")
	if !ours {
		return "", "", false
	}
	word, rest, _ = strings.Cut(line, " ")
	return word, rest, true
}

func parseHave(s string) (h have, err error) {
	const least, most = 5, 8
	f := strings.Fields(s)
	if len(f) != least && len(f) != most {
		return h, fmt.Errorf("the peer's shell describes its machine as %q", printable.Limit(s, 200)) //nolint:mnd // characters
	}
	h.System, h.Machine, h.User = f[0], f[1], f[3]
	if sum, err := hex.DecodeString(f[2]); err == nil && len(sum) == sha256.Size {
		h.Sum = strings.ToLower(f[2])
	}
	if len(f) == most {
		at := func(addr, port string) netip.AddrPort {
			a, err := netip.ParseAddr(addr)
			if err != nil {
				return netip.AddrPort{}
			}
			p, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return netip.AddrPort{}
			}
			return netip.AddrPortFrom(a.Unmap(), uint16(p))
		}
		h.Here, h.There = at(f[4], f[5]), at(f[6], f[7])
	}
	return h, nil
}

// joined waits until the agent has connected, or ssh has ended.
func (c *connection) joined(ctx context.Context, h *agent.Hub) (*agent.Agent, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errSilent)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-gone:
		}
	}()
	defer close(gone)
	defer exchange.Waiting("toll on " + c.host.String())()
	a, err := h.Wait(ctx, c.mark)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	return a, nil
}

// kill kills ssh and its children, such as a ProxyCommand, and ends reads of their output: a
// program that ssh left behind may still hold the pipe.
func (c *connection) kill() {
	select {
	case <-c.ended: // by now the PID may be another process's
	default:
		_ = syscall.Kill(-c.process.PID, syscall.SIGKILL) // NS.Start gives it a group
	}
	_ = c.process.Out.Close()
}

// close closes ssh's input, which ends ssh. If ssh does not end, close kills it.
func (c *connection) close() error {
	_ = c.process.In.Close()
	select {
	case <-c.ended:
	case <-time.After(endLimit):
		c.kill()
		<-c.ended
	}
	// usually the carrier has closed it already
	if err := c.process.Out.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
