// Package agent connects toll to other machines. On each of them toll runs as an agent, which dials
// the toll that measures, starts its workers there and reads counters, settings, meters and clocks:
//
//	toll (Hub)                              agent on another machine
//	                        <- TLS 1.3, both sides with the run's key
//	                        <- hello (identity, host, kernel, version)
//	welcome                 ->
//	request                 -> JSON lines, each with a number
//	                        <- answer of that number; notes of processes that ended
//	start (one-time token)  ->
//	                        <- a further TLS connection, which begins with the token
//	standard input          -> and is the process's
//	                        <- standard output
//
// No port of a machine is opened, so agents may be behind any NAT. Each process has a connection of
// its own. (Over ssh and exec yamux carries the connections; TLS stays, because yamux does not close
// each direction separately.)
//
// What an agent started dies with it, and an agent ends itself when its control connection ends or
// is silent for too long.
//
// The channel is quiet during a window (Hub.Hush). Agents count its bytes; if it carried any, the
// visit has no result.
//
// Clocks of two machines are never subtracted: each end has a schedule by its own CLOCK_MONOTONIC
// (Agent.Clock).
package agent
