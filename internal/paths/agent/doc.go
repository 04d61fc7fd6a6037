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
// No port of a machine is opened, so agents may be behind any NAT. A process's input and output are
// a connection of their own, so nothing is multiplexed. (Over ssh and exec, which offer one stream,
// yamux carries the connections; TLS stays, because yamux does not close each direction
// separately.)
//
// What an agent started dies with it, and an agent ends itself when its control connection ends or
// is silent for too long. So nothing is left when toll dies.
//
// While a window is measured the channel is quiet (Hub.Hush): no pings, no requests, no keepalives
// of the kernel, no TLS tickets. Agents count what the channel carried in the window, and a visit
// in which it carried a byte is no result.
//
// Clocks of two machines are never subtracted. Each end gets its schedule by its own
// CLOCK_MONOTONIC, which is compared by round trips before each visit (Agent.Clock).
package agent
