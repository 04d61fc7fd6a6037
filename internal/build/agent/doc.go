// Package agent connects toll to other machines. On each of them toll runs as an
// agent, which dials the toll that measures, starts its workers there and reads
// counters, settings, meters and clocks:
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
// No port of a machine is opened, so agents may be behind any NAT. What an agent
// started dies with it, and an agent ends itself when its control connection ends
// or is silent for too long; so nothing is left when toll dies.
//
// While a window is measured the channel is quiet (Hub.Hush), and the agents count
// what it carried all the same.
package agent
