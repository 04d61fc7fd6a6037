package endpoints

// The codes of findings on routes. Cells are routes; of those that name several values, the words
// are in Values.
const (
	Uncounted = "routes-uncounted" // none of their bytes are

	PacketsUnclear = "packets-unclear" // the captured packets allow no verdict
	PartBlamed     = "part-blamed"     // What of a response; N is the hop
	NoPartBlamed   = "no-part-blamed"
	Divided        = "divided" // the times of a response by parts are in the cell's evidence
	ByPackets      = "by-packets"
	WhoByPackets   = "who-by-packets"
	TokensUnseen   = "tokens-unseen" // because of What
	GPUBusy        = "gpu-busy"      // how much, in slow gaps and otherwise

	// By the gaps between tokens, of the steadiest route; Values has its SlowGaps.
	SteadiestAlone  = "steadiest-alone" // there is no other route
	Steadiest       = "steadiest"
	SteadiestUnheld = "steadiest-unheld" // of those that neither hold tokens back nor take longer

	// Why a route, the first of Cells, is blamed in comparison with the steadiest one. What is the
	// Blame, Why that by the gaps alone, Prices the excess of its slow gaps and, as far as they are
	// certain, of the times in Names. Values has OtherX for the steadiest route's X. N is the number of
	// other routes whose gaps exceed the median gap less.
	RouteBlamed   = "route-blamed"
	RouteHolds    = "route-holds-tokens" // more than the steadiest one
	TooFewToBlame = "too-few-rounds-to-blame"
	TokensHeld    = "tokens-held" // of the only route

	BlameNetwork  = "blame-network"
	BlameBoth     = "blame-both"
	BlameModel    = "blame-model"
	BlameNobody   = "blame-neither"
	BlameUnclear  = "blame-unclear"
	BlameTooFew   = "blame-too-few-rounds"
	BlameHeld     = "blame-held"
	BlameTogether = "blame-together"
	BlameOneRoute = "blame-one-route"

	NetworkBetter = "network-better" // these routes are better than the baseline
	NetworkWorse  = "network-worse"
	NoNetwork     = "not-the-network"
	NotThePath    = "not-the-path" // these routes differ from the baseline by the time in What
	PathUnclear   = "path-unclear" // as NotThePath, but the parts' intervals do not rule the path out

	Gateway        = "gateway"         // What holds tokens back
	GatewayUnknown = "gateway-unknown" // if there is one
	GatewayOnly    = "gateway-only"    // if what answers is one

	RoutesDiffer  = "routes-differ" // under Load
	RoutesSame    = "routes-same"
	RoutesUnclear = "routes-unclear"
	Exchanged     = "exchanged" // where the time of an exchange goes is in the cell's evidence
	NotExchanged  = "exchange-unknown"
	Connecting    = "connecting" // takes longer or less long than over the baseline
	OneRoute      = "one-route"
	NoBaseline    = "no-baseline"
	Broke         = "broke"

	Proxied      = "docker-proxy"
	ProxiedAlone = "docker-proxy-alone" // without another route
	ProxyCosts   = "docker-proxy-costs"
	ProxyFree    = "docker-proxy-free"

	// Of counts the routes with data on suspects.
	Suspected     = "suspect" // What is a metric
	SlowLookUp    = "slow-look-up"
	PassedOver    = "address-passed-over"
	KeptDelay     = "kept-connection-delay" // Values has the Wait and the number of ACKs
	ACKDelay      = "delayed-acks"          // What takes the Wait; Values may have RTT
	MaybeACKDelay = "perhaps-delayed-acks"
	OffloadsOff   = "offloads-off" // What ends of the first route's, unlike the second's
	NoSuspect     = "no-suspect"
	Unexamined    = "server-not-examined" // because of What
	OnlyQueues    = "only-listen-queues-examined"
	NewEachTime   = "new-connections"
	NotSuspected  = "not-suspected" // What was looked for on Cells

	Attachable = "trace-attach" // which command divides requests further
	Comparable = "trace-compare"

	Adds     = "adds"      // to the times of a response under Load
	PageAdds = "page-adds" // to a page of N queries
)

// The names of Values that are no metrics.
const (
	SlowGaps = "slow_gap_excess_s" // over the median gap
	Other    = "other_"
	Wait     = "wait_s"
	ACKs     = "acks"
)
