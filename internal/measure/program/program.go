// Package program runs foreign programs in a place: a server until it is ready
// and for as long as it is wanted, a client until it ends. It keeps the end of
// what they write, finds metrics in it and knows recipes for well-known pairs of
// programs.
//
// In the place the same binary runs as the programs' keeper (Main), controlled
// like a worker by JSON lines on its standard input and output:
//
//	parent                            keeper
//	Request{Start, command, ready} ->
//	                               <- State (ready), or why not
//	Request{Read}                  ->
//	                               <- State (CPU time so far)
//	Request{Wait}                  ->
//	                               <- State (how it ended, what it wrote)
//	Request{Stop}                  ->
//	                               <- State (what it wrote)
//	end of input                  ->
//	                                  exits
//
// Started apart (path.Command), the keeper is the first process of a PID
// namespace: whatever the programs leave running ends with it. It has memory of
// its own on /dev/shm, which {dir} stands for and which ends with it too.
//
// Be aware: commands are run by /bin/sh, with this process's environment and
// working directory.
package program

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/sock"
)

// Arg is the argument that makes toll a keeper.
const Arg = "program"

// Op is what the keeper is asked to do.
type Op string

// The operations.
const (
	Start Op = "start" // a command; answered when it is ready
	Read  Op = "read"  // how it is
	Wait  Op = "wait"  // until it ends
	Stop  Op = "stop"  // it and all that it started
)

// Request is what the keeper is told.
type Request struct {
	Op      Op     `json:"op"`
	Command string `json:"command,omitempty"` // for /bin/sh
	// Ready says when it is: "tcp" or "udp" once Port is bound, or a regular
	// expression that its output matches; "" is at once.
	Ready  string        `json:"ready,omitempty"`
	Port   uint16        `json:"port,omitempty"`
	NoRoot bool          `json:"no_root,omitempty"` // as an ordinary user, for programs that refuse root
	Limit  time.Duration `json:"limit,omitempty"`   // of Start and Wait
	// Follow is an address to which the TCP connections are counted that are made from Start
	// to Stop; the zero value is none.
	Follow netip.AddrPort `json:"follow,omitzero"`
}

// State is what the keeper says of the program.
type State struct {
	Error   string        `json:"error,omitempty"` // why what was asked for did not happen
	Ended   bool          `json:"ended,omitempty"`
	Exit    string        `json:"exit,omitempty"` // how, if not well: "exit status 1", "signal: killed"
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// CPU is the time that it and all that it started have spent; Known is false
	// if only that of processes that have ended is in it.
	CPU    time.Duration `json:"cpu,omitempty"`
	Known  bool          `json:"known,omitempty"`
	Stdout string        `json:"stdout,omitempty"` // the last maxOutput bytes
	Stderr string        `json:"stderr,omitempty"`
	// Tally is what the followed connections counted, of Stop; nil: the kernel does not tell.
	Tally *sock.Tally `json:"tally,omitempty"`
}

// memoryDir is the keeper's own memory, which {dir} stands for.
const memoryDir = "/dev/shm"
