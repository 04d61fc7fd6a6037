package ports

// What traps are about if their code does not say it. Of is a container, a network, a bridge or a
// service, By a container's state or a driver's option, At the ports.
const (
	Loopback6Lost Code = "loopback6-lost"
	RedirectsVain Code = "redirects-nobody"
	ListensOn4    Code = "listens-on-ipv4"
	BridgeOutDrop Code = "bridge-out-drop"
	SmallMTU      Code = "mtu-small"
	PoolsUsed     Code = "default-pools-used"
)

// about returns a trap that its code says enough of.
func about(code string) Trap { return Trap{Code: code, About: Reason{Code: Code(code)}} }
