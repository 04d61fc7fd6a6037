package lab

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/machine"
)

func (d daemon) dport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPDport(number)
	}
	return nft.TCPDport(number)
}

func (d daemon) sport(number uint16) nft.Match {
	if d.udp {
		return nft.UDPSport(number)
	}
	return nft.TCPSport(number)
}

// firstPktinfo is the Docker Engine whose docker-proxy first answers UDP from the dialled address
// (moby/moby#48571). Earlier ones answer a container on the machine from the bridge's address,
// which the client's socket does not accept.
const firstPktinfo = 28

var majorVersion = regexp.MustCompile(` (\d+)\.`)

func (l *Lab) tryUDPProxy() error {
	file, name := l.findProxy()
	if file == "" {
		return nil
	}
	if m := majorVersion.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= firstPktinfo {
			return nil
		}
	}
	return &machine.UnsupportedError{
		Missing: fmt.Sprintf(
			"%s (%s) does not answer a container's datagrams from the dialled address, as no docker-proxy before Docker Engine %d does", name, file, firstPktinfo),
		Remedy: "--proxy own, or --proxy with the docker-proxy of a later Docker Engine",
	}
}
