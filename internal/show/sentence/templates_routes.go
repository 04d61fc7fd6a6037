package sentence

import "github.com/bridgetoll/bridgetoll/internal/judge/endpoints"

// Uncounted holds for all routes to endpoints.
const Uncounted = "These routes are outside toll's control: their bytes are not counted."

const (
	networkOrModel = "Is it the network or the model?"
	steadiest      = networkOrModel + " Over {cell} the slowest tenth of the gaps between tokens is " +
		"{slow} longer than the median gap"
	ofAll     = "comes from the server, or from what the routes share."
	suspects  = "suspects"
	listed    = "Other suspects: "
	buffering = " its buffering: option http-no-delay in HAProxy, proxy_buffering off in nginx, no " +
		"buffering middleware in Traefik."
)

var ofRoutes = []template{
	{code: endpoints.Uncounted, text: Uncounted, details: 1},
	{code: endpoints.PacketsUnclear, text: "Over {cell}, the captured packets allow no verdict: " +
		"{unproven}.", most: all, question: networkOrModel},
	{code: endpoints.PartBlamed, text: "{Who}, over {cell}: {needs}.", most: all, merge: ofCells,
		question: networkOrModel},
	{code: endpoints.NoPartBlamed, text: "Neither, over {cell}: {needs}, and {adds}.",
		most: all, question: networkOrModel},
	{code: endpoints.Divided, text: "{divided}", detail: "{seen}", most: all, merge: inPlace,
		details: 1},
	{code: endpoints.ByPackets, text: networkOrModel + " By the times at which packets were " +
		"captured:", details: 2},
	{code: endpoints.WhoByPackets, text: "{cell}: {who}.", details: 2},
	{code: endpoints.TokensUnseen, text: "When tokens left the server is unknown over {labels}: " +
		"{what}.", most: all, item: "unseen"},
	{code: endpoints.GPUBusy, text: "{gpus}", most: all},
	{code: endpoints.SteadiestAlone, text: steadiest + ". With one route, the path's part cannot be " +
		"told from the server's: give another route to the same server.", details: 2},
	{code: endpoints.Steadiest, text: steadiest + ", less than over any other route: that much " +
		ofAll, details: 2},
	{code: endpoints.SteadiestUnheld, text: steadiest + ", less than over any other route that neither " +
		"holds tokens back nor takes longer: that much " + ofAll, details: 2},
	{code: endpoints.RouteBlamed, text: "{proof}", detail: "{cell}: {what}: {why}", most: all,
		details: 2},
	{code: endpoints.RouteHolds, text: "{proof}", detail: "{cell}: {what}: {why}", most: all,
		details: 2},
	{code: endpoints.TooFewToBlame, detail: "{cell}: too few rounds to say.", details: 2},
	{code: endpoints.TokensHeld, text: "Over {cell} {held} of the tokens came together with another " +
		"one. Give the server's own address as another route to see which of the two holds them " +
		"back.", most: all, details: 2},

	{code: endpoints.BlameNetwork, text: "The network, over {labels}.", most: all, item: "blames",
		question: networkOrModel},
	{code: endpoints.BlameBoth, text: "Both, over {labels}.", most: all, item: "blames",
		question: networkOrModel},
	{code: endpoints.BlameModel, text: "The model, or what the routes share, over {labels}.",
		most: all, item: "blames", question: networkOrModel},
	{code: endpoints.BlameNobody, text: "Neither, over {labels}: the tokens come steadily.",
		most: all, item: "blames", question: networkOrModel},
	{code: endpoints.BlameUnclear, text: "Unclear over {labels}: measure longer, or with more " +
		"--tokens.", most: all, item: "blames", question: networkOrModel},
	{code: endpoints.BlameTooFew, text: "Too few rounds to say over {labels}: it takes at least " +
		"{least}.", most: all, item: "blames", question: networkOrModel},
	{code: endpoints.BlameHeld, text: "Neither the wire nor the model's speed, over {labels}: the " +
		"server, or a gateway in front of it, holds tokens back.", most: all, item: "blames",
		question: networkOrModel},
	{code: endpoints.BlameTogether, text: "The server, or something before all routes, sends its " +
		"tokens together.", most: all, item: "blames", question: networkOrModel},
	{code: endpoints.BlameOneRoute, text: "With one route, {labels}, path and server cannot be told " +
		"apart: give another route to the same server.", most: all, item: "blames",
		question: networkOrModel},
	{code: endpoints.NetworkBetter, text: "Yes, over {base}: {labels} {is} better.", most: all,
		item: "network"},
	{code: endpoints.NetworkWorse, text: "Yes, over {labels}.", most: all, item: "network"},
	{code: endpoints.NotThePath, text: "Not over {labels}: what differs from {base} is the " +
		"time in {inside}.", most: all, item: "network"},
	{code: endpoints.PathUnclear, text: "Unclear over {labels}: what differs from {base} seems to be " +
		"the time in {inside}, but its interval leaves the path room.", most: all, item: "network"},
	{code: endpoints.NoNetwork, text: "No: the routes do not differ, so the time is spent in the " +
		"server and the client, which they share.", most: all},

	{code: endpoints.Gateway, text: "Over {labels}, {what} answers: {gateway}.", most: all},
	{code: endpoints.GatewayUnknown, text: "If a gateway is in front of the server, stop" + buffering,
		most: all},
	{code: endpoints.GatewayOnly, text: "If what answers over {labels} passes on another server's " +
		"tokens, stop" + buffering, most: all},
	{code: endpoints.RoutesDiffer, text: "Against {base}: {clauses}.", most: all},
	{code: endpoints.RoutesSame, text: "{labels} {has} the same {noun} as {base}{within}.", most: all},
	{code: endpoints.RoutesUnclear, text: "It is unclear whether {labels} {differs} from {base} in " +
		"{noun}.", most: all},
	{code: endpoints.Exchanged, text: "Over {cell}, {exchange}.", most: all},
	{code: endpoints.NotExchanged, text: "Where the time of a {exchanged} goes is unknown over " +
		"{labels}: {what}.", details: 3},
	{code: endpoints.Connecting, text: "To connect, {connects}.", most: all},
	{code: endpoints.OneRoute, text: "With one route, the cost of the path cannot be measured: give " +
		"another route to the same server.", most: all},
	{code: endpoints.NoBaseline, text: "Nothing can be compared: the baseline {baseline} has no " +
		"result, or no other route has one.", most: all},
	{code: endpoints.Broke, text: "{labels} broke and did not come back: {their} figures are from " +
		"before that.", most: all},
	{code: endpoints.Proxied, text: "{cell} goes through docker-proxy.", most: all},
	{code: endpoints.ProxiedAlone, text: "{cell} goes through docker-proxy: the container's own " +
		"address, {behind}, is another route to it.", most: all},
	{code: endpoints.ProxyCosts, text: "{cell} goes through docker-proxy: dial the container, " +
		"{behind}{fast}.", most: all},
	{code: endpoints.ProxyFree, text: "{cell} goes through docker-proxy, at no measurable cost.",
		most: all},

	{code: endpoints.Suspected, text: "{suspect}.", most: all, item: suspects, list: listed,
		merge: ofWhat},
	{code: endpoints.SlowLookUp, text: "{lookup}.", most: all, item: suspects, list: listed,
		merge: inPlace},
	{code: endpoints.PassedOver, text: "{passed}.", most: all, item: suspects, list: listed,
		merge: inPlace},
	{code: endpoints.KeptDelay, text: "{delayed}.", most: all, item: suspects, list: listed,
		merge: inPlace},
	{code: endpoints.ACKDelay, text: "{delayed}.", most: all, item: suspects, list: listed,
		merge: inPlace},
	{code: endpoints.MaybeACKDelay, text: "{delayed}.", most: all, item: suspects, list: listed,
		merge: inPlace},
	{code: endpoints.OffloadsOff, text: "{offloads}.", most: all, item: suspects, list: listed},
	{code: endpoints.NoSuspect, text: "No other suspect.", most: all},
	{code: endpoints.Unexamined, text: " The server's side{unexamined} was not examined: {what}.",
		continues: true},
	{code: endpoints.OnlyQueues, text: " The server{unexamined} was not examined, except for its " +
		"listen queues: {what}.", continues: true},
	{code: endpoints.NewEachTime, text: "The server keeps connections open, but each response came " +
		"over a new one: with --requests 8 most come over kept ones, where delayed acknowledgements " +
		"show.", details: 4},
	{code: endpoints.NotSuspected, text: "Looked for: {absent}.", details: 4, merge: inPlace},
	{code: endpoints.Attachable, text: "sudo toll trace --attach {dial} divides others' requests.",
		most: all},
	{code: endpoints.Comparable, text: "{tracing} divides the time of {asked} part by part.",
		most: all},
	{code: endpoints.Adds, text: "{times}.", details: 2},
	{code: endpoints.PageAdds, text: "{page}.", details: 2},
}
