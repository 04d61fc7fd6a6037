// Package program runs foreign programs in a place: a server until it is no longer needed, and a
// client until it ends. It keeps the end of what they write, finds metrics in it and has recipes
// for well-known pairs.
//
// In the place, the same binary runs as the programs' keeper (Main), controlled like a worker by
// JSON lines. If it is the first process of a PID namespace (path.Command.Apart), all programs and
// its memory on /dev/shm, the value of {dir}, end with it. Commands are run by /bin/sh, with this
// process's environment and working directory.
package program

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// Arg is the argument that makes toll a keeper.
const Arg = "program"

// Op is the operation of a Request.
type Op string

const (
	Start Op = "start" // a command; answered when it is ready
	Read  Op = "read"
	Wait  Op = "wait" // until it ends
	Stop  Op = "stop" // the program and everything that it started
)

// Request is a request to the keeper.
type Request struct {
	Op      Op     `json:"op"`
	Command string `json:"command,omitempty"` // for /bin/sh
	// Ready is "tcp" or "udp" once Port is bound, or a regular expression that its output matches;
	// "" is at once.
	Ready  string        `json:"ready,omitempty"`
	Port   uint16        `json:"port,omitempty"`
	NoRoot bool          `json:"no_root,omitempty"` // for programs that refuse root
	Limit  time.Duration `json:"limit,omitempty"`   // for Start and Wait
	// Follow is an address whose TCP connections are counted from Start to Stop; zero: none.
	Follow netip.AddrPort `json:"follow,omitzero"`
}

// State is the keeper's reply.
type State struct {
	Error string `json:"error,omitempty"` // why the request failed
	Ended bool   `json:"ended,omitempty"`
	// how it failed: "exit status 1", "signal: killed"
	Exit    string `json:"exit,omitempty"`
	EndedAt int64  `json:"ended_at,omitempty"` // by clock.Now
	// how a process that it left running was killed, not by toll
	Orphan  string        `json:"orphan,omitempty"`
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// CPU is the time of the program and everything that it started; Known is false if it includes
	// only processes that have ended.
	CPU    time.Duration `json:"cpu,omitempty"`
	Known  bool          `json:"known,omitempty"`
	Stdout string        `json:"stdout,omitempty"` // the last maxOutput bytes
	Stderr string        `json:"stderr,omitempty"`
	// Tally has the counts of the followed connections after Stop; nil: unknown.
	Tally *sock.Tally `json:"tally,omitempty"`
}

const memoryDir = "/dev/shm"
