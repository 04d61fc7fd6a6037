package ports

import (
	"encoding"
	"slices"
	"time"
)

// Reason is why a path ends where it does, what is not known of it, or why a client gained or lost
// an answer. Its zero value is none.
type Reason struct {
	Code Code
	// Of is a server, a program, a container, a client or a network, and By who sends packets there.
	Of, By string
	At     string // an address, or a port of Of
	Text   string // a rule's, or that of a namespace's part that could not be copied
	N      int    // connections, or the number of a line
	Since  time.Duration
	Lost   Loss   // of Lost, LostBehind, LostBesides and ItIsLost
	Words  string // of Report.Say
}

var (
	_ encoding.TextMarshaler   = Reason{}
	_ encoding.TextUnmarshaler = (*Reason)(nil)
)

// MarshalText returns the words.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.Words), nil }

// UnmarshalText sets the words, and nothing else.
func (r *Reason) UnmarshalText(b []byte) error {
	*r = Reason{Words: string(b)}
	return nil
}

// Code identifies a reason.
type Code string

// The codes of reasons for which a path ends.
const (
	ServerPaused  Code = "paused"         // Of
	QueueFull     Code = "queue-full"     // Of does not accept N connections
	QueueOld      Code = "queue-old"      // nor has it Since
	Reserved      Code = "reserved"       // by Of
	WrongSource   Code = "wrong-source"   // docker-proxy answers from At
	UnknownSocket Code = "unknown-socket" // answered
	NotAnswered   Code = "not-answered"   // but accepted
	NothingBehind Code = "nothing-behind" // the proxy that accepts
	LostBehind    Code = "lost-behind"    // it, on the way to At
	NobodyBehind  Code = "nobody-behind"  // By forwards to Of, where nothing listens on At
	NobodyByRule  Code = "nobody-by-rule" // rule By, whose text is Text, redirects to it
	NothingOn     Code = "nothing-on"     // At
	NoSocket      Code = "no-socket"      // at At
	Lost          Code = "lost"           // after By sent it to At, or without By a rule did
	NoAnswer      Code = "no-answer"      // as Lost
	LostBesides   Code = "lost-besides"   // nothing listening on At
	OwnRefused    Code = "own-refused"    // this machine's own connection
	OwnUnanswered Code = "own-not-answered"
)

// The codes of what is not known of a path.
const (
	// Untried is not known of any path if there is no copy of the machine.
	Untried       Code = "untried"
	Uncopied      Code = "uncopied"     // Text
	NotMade       Code = "not-made"     // the connection, in the copy
	RouteThere    Code = "route-there"  // to At
	NoPeer        Code = "no-peer"      // of the device Of has At
	AtRandom      Code = "at-random"    // some connections are not answered
	AnswersFrom   Code = "answers-from" // perhaps At
	BehindRelay   Code = "behind-relay" // Of
	WhoseSocket   Code = "whose-socket"
	DockerUnasked Code = "docker-unasked"
	PortBehind    Code = "port-behind"    // By, of Of
	ListensOn     Code = "listens-on"     // At
	AnswersBeyond Code = "answers-beyond" // on At
	DialsOnly     Code = "dials-only"     // By dials At, the only address of Of
	TaskAnswers   Code = "task-answers"
	ProxyOnDemand Code = "proxy-on-demand"
	AroundIt      Code = "around-it" // the container of Of's that toll is in
)

// The codes of why a client gained or lost an answer, or gets another one.
const (
	ItIsLost      Code = "it-is-lost"
	NotServed     Code = "not-served" // any more
	NoneThere     Code = "no-container-there"
	NoneWasThere  Code = "no-container-was-there"
	NoRouteThere  Code = "no-default-route"
	NoRouteLed    Code = "no-default-route-led"
	AddressGone   Code = "address-gone" // At, of device Of
	AddressNew    Code = "address-new"
	DeviceGone    Code = "device-gone" // Of
	DeviceNew     Code = "device-new"
	DeviceDown    Code = "device-down"
	DeviceWasDown Code = "device-was-down"
	NotRedirected Code = "not-redirected" // any more, and no socket at At
	OtherServer   Code = "other-server"   // Of instead of By
	SeenAs        Code = "seen-as"        // At
	NoLongerSeen  Code = "no-longer-seen"
	SeenItself    Code = "seen-itself"
)

// The codes of why an expectation does not hold, or is not certain.
const (
	NetworkUnknown   Code = "network-unknown"   // of containers on Of
	NobodyOnNetwork  Code = "nobody-on-network" // Of, by line N
	NetworkIsHome    Code = "network-is-home"   // as that, but container Of is on networks By
	NetworkMeant     Code = "network-meant"     // as that; perhaps one of By is meant
	NetworksKnown    Code = "networks-known"    // as that; By are the networks of containers
	LinesExclude     Code = "lines-exclude"     // each other, at the numbers At
	RedirectsUnknown Code = "redirects-unknown" // of other connections
	ServedUnknown    Code = "served-unknown"    // whether rules serve At
	NothingServes    Code = "nothing-serves"    // At
	Reaches          Code = "reaches"           // Of, At
	MayReach         Code = "may-reach"         // Of, At
	ReachUnknown     Code = "reach-unknown"     // of Of, At; followed by the reasons
	GetsNoAnswer     Code = "gets-no-answer"    // Of, at At; followed by the reason
	DaemonsAsked     Code = "daemons-asked"     // by programs Of, which a copy does not have
	CommandHindered  Code = "command-hindered"  // as it says in Text
)

// Loss is where and why packets were lost. Its zero value is none.
type Loss struct {
	Code   LossCode
	Where  string // as in Block; "": this machine
	Reply  bool   // as in Block
	Table  string // as the program names it that lists the rule
	Chain  string
	Rule   string // its text; "": not known
	Number int    // from 1; 0: the chain's policy
	// Device is where packets were lost or leave, and Other the device that is meant.
	Device, Other string
	Of            string // a container
	At            string // an address
	Key           string // a sysctl that is 0
}

// LossCode identifies a cause of a loss.
type LossCode string

// The causes of losses. A device that is "" is not known.
const (
	Dropped           LossCode = "dropped"         // by a rule
	Rejected          LossCode = "rejected"        // by a rule
	StrictSource      LossCode = "rp-filter"       // at Device, of At
	NotForwarded      LossCode = "not-forwarded"   // Key
	WrongDevice       LossCode = "wrong-device"    // Device, not Other
	LeftUnanswered    LossCode = "left-unanswered" // by Device
	NoReason          LossCode = "no-reason"
	NoRouteBack       LossCode = "no-route-back" // to At
	NoRouteRedirected LossCode = "no-route-redirected"
	NoRoute           LossCode = "no-route"         // to At
	AnswerElsewhere   LossCode = "answer-elsewhere" // by Device; Other: not by that
	Untranslated      LossCode = "untranslated"     // Key
	Left              LossCode = "left"             // by Device
	NoNftReason       LossCode = "no-nft-reason"
	NotInBridge       LossCode = "not-in-bridge" // Other is; Of has At at Device
	NoMachine         LossCode = "no-machine"    // At
	NotProxied        LossCode = "not-proxied"   // At of Of, in the network of Device
	NoHairpin         LossCode = "no-hairpin"    // at Device
	OwnPacket         LossCode = "own-packet"
	Loopback6In       LossCode = "loopback6-in" // by Device
	Loopback6Out      LossCode = "loopback6-out"
	LoopbackOut       LossCode = "loopback-out"
	LoopbackDropped   LossCode = "loopback-dropped" // by Device: Key
	LoopbackSource    LossCode = "loopback-source"  // at Of
	StrictNeighbour   LossCode = "strict-neighbour" // it leaves by Device, Other ignores it
	NoNextHop         LossCode = "no-next-hop"
)

// without returns the reason without the address if that is the dialled one, which need not be
// said.
func (r Reason) without(dial string) Reason {
	switch r.Code {
	case NothingOn, NoSocket, NotRedirected:
		if r.At == dial {
			r.At = ""
		}
	}
	return r
}

// Words puts reasons into words: see internal/show/sentence.
type Words interface {
	Reason(r Reason) string
	// Cause returns the words for why no rule, but something else, lost packets.
	Cause(l Loss) string
}

// Say sets the words of all reasons, and the texts that are made of them.
func (r *Report) Say(w Words) {
	if r.Port != 0 && r.Answer != nil {
		for _, text := range r.shut(w) {
			r.Answer.Add(text)
		}
	}
	for i := range r.Ports {
		sayPaths(w, r.Ports[i].Paths, r.Ports[i].Dials)
	}
	for i := range r.Inside {
		sayPaths(w, r.Inside[i].Paths, r.Inside[i].Dials)
	}
	for i := range r.Traps {
		r.Traps[i].say(w)
	}
	for i := range r.Expected {
		r.Expected[i].say(w)
	}
	if r.Changes != nil {
		sayChanges(w, r.Changes.Gained)
		sayChanges(w, r.Changes.Lost)
		sayChanges(w, r.Changes.Moved)
		for i := range r.Changes.Doubts {
			r.Changes.Doubts[i].say(w)
		}
	}
}

func sayPaths(w Words, paths map[Client]Path, dials []Path) {
	for c, p := range paths {
		p.say(w)
		paths[c] = p
	}
	for i := range dials {
		dials[i].say(w)
	}
}

func (p *Path) say(w Words) {
	p.Why.say(w)
	p.Doubt = slices.Clone(p.Doubt)
	for i := range p.Doubt {
		p.Doubt[i].say(w)
	}
	if p.Block != nil && p.Block.Chain == "" {
		p.Block.Cause = w.Cause(p.cause().Lost)
	}
}

func (r *Reason) say(w Words) {
	if r.Code != "" {
		r.Words = w.Reason(*r)
	}
}

func sayChanges(w Words, all []Change) {
	for i := range all {
		x := &all[i]
		x.Because.say(w)
		x.briefly = x.Because.Words
		if b := x.Because; b.Code == ItIsLost {
			b.Code = Lost
			x.briefly = w.Reason(b)
		}
	}
}
