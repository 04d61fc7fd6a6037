package endpoints

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// causes has what tokens wait for in the server's TCP, and as what that is blamed.
var causes = map[string]struct{ waits, blames string }{
	sample.WaitNagle: {"for acknowledgements, without TCP_NODELAY (set it at the server)",
		"the server's TCP, without TCP_NODELAY"},
	sample.WaitQueue: {"behind the full queue of the server's device",
		"the full queue of the server's device"},
	sample.WaitCongestion: {"for acknowledgements, with a full congestion window",
		"the network, which delays or loses packets"},
	sample.WaitWindow: {"for a reader that does not read", "a reader that does not read"},
	sample.WaitMore: {"for the rest, which the server had announced (MSG_MORE, TCP_CORK)",
		"the server, which writes in pieces"},
	sample.WaitOther: {"for an unknown cause", "the server's TCP"},
}

// Waited returns a clause on what waited for a cause: noun is "token" or "reply". What waits of a
// long reply may be its end, whose time is part of the transfer, and not of the server's TCP.
func Waited(x sample.EvidenceWait, noun string) string {
	where := "in the server's TCP"
	if noun == "reply" {
		where = "at the server"
	}
	return fmt.Sprintf("%s waited %s%s %s %s", units.Plural(x.Tokens, noun),
		workload.Briefly(x.Sum/float64(x.Tokens)), units.Agree(x.Tokens, "", " each"), where,
		causes[x.Cause].waits)
}

// Blames returns as what a cause of waits is blamed.
func Blames(cause string) string { return causes[cause].blames }
