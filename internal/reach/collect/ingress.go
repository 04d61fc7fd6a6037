package collect

import (
	"context"
	"os"

	"github.com/moby/moby/api/types/swarm"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// ingress reads the swarm's ingress network. A node without a swarm has none, and a worker cannot
// list the services.
func (c *collector) ingress(ctx context.Context, api *client.Client) {
	const (
		gateway = "docker_gwbridge"
		sandbox = "ingress-sbox"
	)
	n, err := api.NetworkInspect(ctx, gateway, client.NetworkInspectOptions{})
	if err != nil {
		return
	}
	in := ports.Ingress{Addr: n.Network.Containers[sandbox].IPv4Address.Addr()}
	list, err := api.ServiceList(ctx, client.ServiceListOptions{})
	if err == nil {
		for _, s := range list.Items {
			for _, p := range s.Endpoint.Ports {
				if p.PublishMode == swarm.PortConfigPublishModeIngress {
					in.Services = append(in.Services,
						ports.Service{Name: s.Spec.Name, Proto: string(p.Protocol),
							Port: uint16(p.PublishedPort), Target: uint16(p.TargetPort)})
				}
			}
		}
	}
	_, err = os.Stat("/proc/net/ip_vs")
	in.NoIPVS = os.IsNotExist(err)
	c.f.Ingress = in
}
