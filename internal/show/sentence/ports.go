package sentence

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// FillPorts puts the reasons of a report on ports into words.
func FillPorts(r *ports.Report) { r.Say(portWords{}) }

type portWords struct{}

const (
	notCopied = "connections were not tried in a copy of the machine"
	queue     = "{refuses}{connections} to accept, "
)

// ofPorts are the sentences of reasons, whose blanks portWords fills.
var ofPorts = map[ports.Code]string{
	ports.ServerPaused: "{of} is paused: the kernel accepts connections to it, but it does not answer",
	ports.QueueFull:    queue + "as many as the socket can hold",
	ports.QueueOld:     queue + "the oldest since {since} s",
	ports.Reserved: "{of}'s socket reserves the port and accepts connections, but never " +
		"answers",
	ports.WrongSource: "docker-proxy answers from {at}, and clients drop replies from an address that " +
		"they did not dial",
	ports.UnknownSocket: "the answer came from an unknown socket",
	ports.NotAnswered:   "the connection is accepted, but not answered",
	ports.NothingBehind: "the proxy accepts, but nothing answers",
	ports.LostBehind:    "the proxy accepts, and what it sends to {at} is {lost}",
	ports.NobodyBehind:  "{by} forwards to {of}, where nothing listens on {at}",
	ports.NobodyByRule:  "{by} redirects to {of}, where nothing listens on {at}{rule}",
	ports.NothingOn:     "nothing listens{on}",
	ports.NoSocket:      "no socket listens{on}",
	ports.Lost:          "{before}{lost}",
	ports.NoAnswer:      "{before}no answer",
	ports.LostBesides:   "nothing listens on {at}; besides, the packet is {lost}",
	ports.OwnRefused:    "this machine's own connection was refused",
	ports.OwnUnanswered: "this machine's own connection was not answered",

	ports.Untried:       notCopied,
	ports.Uncopied:      "{text}",
	ports.NotMade:       "the connection was not made in the copy of the network",
	ports.RouteThere:    "whether the other machine has a route to {at}",
	ports.NoPeer:        "no peer of WireGuard's {of} is allowed {at}",
	ports.AtRandom:      "rules choose at random, and not every connection is answered",
	ports.AnswersFrom:   "whether the server answers from the dialled address or from {at}",
	ports.BehindRelay:   "what is behind {of}",
	ports.WhoseSocket:   "which program has the socket: the server, or one that passes connections on",
	ports.DockerUnasked: "Docker was not asked: dockerd may serve this port itself",
	ports.PortBehind:    "to which port of {of} {by} leads",
	ports.ListensOn:     "whether anything listens on {at}",
	ports.AnswersBeyond: "whether anything answers on {at}, outside this machine and its containers",
	ports.DialsOnly:     "whether {by} dials {at}, the only address on which {of} listens",
	ports.TaskAnswers:   "whether any of the service's tasks answers",
	ports.ProxyOnDemand: "dockerd has the socket, no docker-proxy runs for it, and no rule redirects " +
		"127.0.0.1: it answers only if this engine starts docker-proxy for the first client",
	ports.AroundIt: "which ports of this {of} container the machine around it publishes, and what it " +
		"lets through",

	ports.ItIsLost:      "it is {lost}",
	ports.NotServed:     "nothing serves it any more",
	ports.NoneThere:     "no container is there",
	ports.NoneWasThere:  "no container was there",
	ports.NoRouteThere:  "no default route leads there",
	ports.NoRouteLed:    "no default route led there",
	ports.AddressGone:   "{of} no longer has the address {at}",
	ports.AddressNew:    "{of} did not have the address {at}",
	ports.DeviceGone:    "there is no device {of} any more",
	ports.DeviceNew:     "there was no device {of}",
	ports.DeviceDown:    "device {of} is down",
	ports.DeviceWasDown: "device {of} was down",
	ports.NotRedirected: "no rule redirects it any more, and no socket listens{on}",
	ports.OtherServer:   "answered by {of} instead of {by}",
	ports.SeenAs:        "the server sees the client as {at}",
	ports.NoLongerSeen:  "the server no longer sees the client's address",
	ports.SeenItself:    "the server sees the client's own address",

	ports.NetworkUnknown:   "whether a container is on {of} is not known: " + notCopied,
	ports.NobodyOnNetwork:  "no container is on {of} (line {n})",
	ports.NetworkIsHome:    "no container is on {of}, which is a container on {by} (line {n})",
	ports.NetworkMeant:     "no container is on {of}; did you mean {by}? (line {n})",
	ports.NetworksKnown:    "no container is on {of}; there are containers on {by} (line {n})",
	ports.LinesExclude:     "lines {at} cannot both hold",
	ports.RedirectsUnknown: "whether rules redirect other connections is not known: " + notCopied,
	ports.ServedUnknown:    "whether rules serve {at} is not known: " + notCopied,
	ports.NothingServes:    "nothing serves {at}",
	ports.Reaches:          "{of} reaches {at}",
	ports.MayReach:         "{of} may reach {at}",
	ports.ReachUnknown:     "whether {of} reaches {at} is not known",
	ports.GetsNoAnswer:     "{of} gets no answer at {at}",
	ports.DaemonsAsked:     "what {of} would change is not known: a copy has no daemon",
	ports.CommandHindered:  "a command may have failed only because it ran in a copy: {text}",
}

// ofTraps are the sentences of traps, by what they are about.
var ofTraps = map[ports.Code]string{
	ports.PortConflict:    "Container {of} ({by}) cannot bind its port: it is already in use{has}",
	ports.ReuseportTwins:  "Two programs share a port, and the kernel distributes connections between them",
	ports.PublishedNobody: "nothing listens on these published ports' targets in container {of}",
	ports.RedirectsVain:   "rules redirect these ports to a port of this machine on which nothing listens",
	ports.ListensOn4:      "the program in container {of} listens on IPv4 only",
	ports.RouteLocalnet:   "127.0.0.1 is published by NAT without a proxy, and connections to it hang",
	ports.Loopback6Nothing: "127.0.0.1 answers and ::1 refuses: programs that try all addresses of " +
		"localhost go on to 127.0.0.1 at once, those that dial ::1 only fail",
	ports.Loopback6Lost: "127.0.0.1 answers and packets to ::1 are lost: programs that first try ::1 " +
		"wait, from 0.3 s to their whole timeout",
	ports.Masqueraded: "Network {of} is to be without NAT ({by}), but rules replace the source addresses " +
		"of its packets",
	ports.PublishedBypass: "A port is published for this machine only, but other machines with a route " +
		"to the container's network reach it at the container's own address",
	ports.BridgeNFDrop:  "Rules for routed traffic drop what crosses bridge {of}",
	ports.BridgeOutDrop: "Packets from machines at bridge {of} to other networks are dropped",
	ports.NeighboursFull: "The table of neighbours is nearly full: once it is full, the kernel finds no " +
		"hardware address for new ones, and connections to containers fail at times",
	ports.AddressesUsed: "The address pool of a network is nearly used up: once it is, containers on it " +
		"do not start (no available IPv4 addresses)",
	ports.PoolsUsed: "The engine's default address pools are nearly used up: once they are, a new " +
		"network needs --subnet (all predefined address pools have been fully subnetted)",
	ports.NeverAccepts: "A program does not accept connections on its socket: clients connect and get " +
		"no answer",
	ports.ProxyPorts: "docker-proxy has hardly any local port left for connections to its container: it " +
		"accepts clients' connections and closes those that it cannot forward",
	ports.UDPStale: "Connection tracking still sends UDP clients of a published port to an old " +
		"destination: as long as they send, the present rules do not apply to them",
	ports.ConntrackFull: "The connection table is nearly full: once it is full, the kernel drops new " +
		"connections silently",
	ports.ProxyLoad: "docker-proxy forwards much traffic: each byte passes through two more sockets and " +
		"a process",
	ports.PublicLocalOnly: "A port is published to every machine, perhaps needlessly: at present only " +
		"this machine uses it",
	ports.Unpublished: "A port is EXPOSEd but not published: only the container's own address leads to " +
		"it. This machine and the container's networks reach that address, and so does another machine " +
		"with a route there, unless the firewall drops its packets",
	ports.MTUDiffers: "The MTU differs along the path of {of}: packets are smaller than they could be",
	ports.SmallMTU: "The MTU differs along the path of {of}: packets larger than the smallest MTU need " +
		"ICMP errors, and connections hang where those are dropped",
	ports.Paused:     "Container {of} is paused: the kernel accepts connections to it, but it does not answer",
	ports.Restarting: "Container {of} ({by}) does not stay up: {at} is only served intermittently",
	ports.InternalNetwork: "Container {of} should have {ports} published, but Docker publishes no ports of " +
		"an --internal network",
	ports.PublishedIgnored: "Docker ignores -p of container {of}: no port of this machine leads to it",
	ports.UDPSource: "A UDP service on all addresses may answer from an address that the client did not " +
		"dial, and many clients drop such answers",
	ports.IngressNothing: "Service {of} publishes {at} through the swarm's ingress, but this node does " +
		"not accept it",
}

// ofLosses are the sentences of causes without a rule.
var ofLosses = map[ports.LossCode]string{
	ports.StrictSource:      "rp_filter at {device}: {at} is not routed back through it",
	ports.NotForwarded:      "it does not forward packets: {key} is 0",
	ports.WrongDevice:       "it leaves by {device}, not by {other}",
	ports.LeftUnanswered:    "it leaves by {device}, and no machine there answers",
	ports.NoReason:          "no rule dropped it, and toll does not know why",
	ports.NoRouteBack:       "no route back to {at}",
	ports.NoRouteRedirected: "no route to where a rule redirects it",
	ports.NoRoute:           "no route to {at}",
	ports.AnswerElsewhere:   "the answer leaves by {device}{instead}",
	ports.Untranslated: "the server's answer goes straight to the client, untranslated" +
		"{because}",
	ports.Left:        "it leaves by {device}",
	ports.NoNftReason: "no nf_tables rule dropped it, and toll does not know what did",
	ports.NotInBridge: "container {of} has the address {at}, but its {device} is no port of {other}",
	ports.NoMachine:   "no machine has the address {at}",
	ports.NotProxied: "{at} is in the network of {device}, and this machine does not answer there for " +
		"{of}",
	ports.NoHairpin: "the bridge does not send it back: {device} has no hairpin mode",
	ports.OwnPacket: "its own packet comes back to it with its own address",
	ports.Loopback6In: "it comes in by {device}, and IPv6 takes packets to ::1 from lo only: it has no " +
		"route_localnet",
	ports.Loopback6Out:    "packets from ::1 never leave lo: IPv6 has no route_localnet",
	ports.LoopbackOut:     "packets from 127.0.0.1 may not leave lo: route_localnet is 0",
	ports.LoopbackDropped: "{device} drops packets from 127.0.0.1: {key} is 0",
	ports.LoopbackSource:  "no rule changes the source 127.0.0.1, which {of} drops",
	ports.StrictNeighbour: "it leaves by {device}, and strict rp_filter at {other} ignores it",
	ports.NoNextHop:       "no next hop answers",
}

// Reason implements ports.Words.
func (w portWords) Reason(r ports.Reason) string {
	before := ""
	switch {
	case r.By != "":
		before = r.By + " sends it to " + r.At + ", then "
	case r.At != "":
		before = "DNAT to " + r.At + ", then "
	}
	return strings.NewReplacer("{of}", r.Of, "{by}", r.By, "{at}", r.At, "{text}", r.Text,
		"{before}", before, "{lost}", w.lost(r.Lost), "{on}", told(r.At != "", " on "+r.At),
		"{has}", told(r.Text != "", "; "+r.Text), "{ports}", cmp.Or(r.At, "a port"),
		"{rule}", told(r.Text != "", ": "+r.Text),
		"{refuses}", told(r.Of != "", r.Of+" does not accept connections: it has "),
		"{n}", strconv.Itoa(r.N), "{connections}", units.Plural(r.N, "connection"),
		"{since}", fmt.Sprintf("%.0f", r.Since.Seconds())).Replace(cmp.Or(ofPorts[r.Code], ofTraps[r.Code]))
}

// Cause implements ports.Words.
func (portWords) Cause(l ports.Loss) string {
	return strings.NewReplacer("{of}", l.Of, "{at}", l.At, "{key}", l.Key, "{other}", l.Other,
		"{device}", cmp.Or(l.Device, "the next device"),
		"{instead}", told(l.Other != "", " instead of "+l.Other),
		"{because}", told(l.Key != "", ": "+l.Key+" is 0")).Replace(ofLosses[l.Code])
}

// lost says where and why packets were lost.
func (w portWords) lost(l ports.Loss) string {
	text := told(l.Reply, "answered, but the answer is ")
	switch l.Code {
	case "":
		return ""
	case ports.Dropped, ports.Rejected:
	default:
		return text + "lost in " + cmp.Or(l.Where, "this machine") + ": " + w.Cause(l)
	}
	return text + string(l.Code) + " by " + told(l.Number == 0, "the policy of ") + l.Table + " " +
		l.Chain + told(l.Number > 0, fmt.Sprintf(" rule %d", l.Number)) +
		told(l.Where != "", " in "+l.Where) + told(l.Rule != "", ": "+l.Rule)
}
