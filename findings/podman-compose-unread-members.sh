#!/bin/bash
# One would guess that podman-compose applies what the Compose specification says of networks, or
# tells what it does not apply.
#
# It says nothing and leaves out aux_addresses, gw_priority and interface_name: a container may get
# an address that belongs to another machine, another default route, and eth0 in place of eth7.
# compose-go, Docker's own parser, reads all three. x-podman.interface_name is applied.
#
# podman-compose 1.6.0 (PyPI), compose-go 2.16.2 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get podman-compose==1.6.0
go_get github.com/compose-spec/compose-go/v2/cli@v2.16.2
cat >compose.yaml <<'END'
services:
  web:
    image: localhost/web
    networks:
      front: {gw_priority: 5, interface_name: eth7}
networks:
  front:
    ipam: {config: [{subnet: 10.5.0.0/24, gateway: 10.5.0.254, aux_addresses: {router: 10.5.0.1}}]}
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithName("p"))
	if err != nil {
		panic(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		panic(err)
	}
	web := project.Services["web"].Networks["front"]
	fmt.Println(project.Networks["front"].Ipam.Config[0].AuxiliaryAddresses, web.GatewayPriority,
		web.InterfaceName)
}
END
# A Podman that has no containers, and each network once it was asked for.
cat >podman <<'END'
#!/bin/bash
case "$*" in
*"network exists"*) [ -e asked ] || { touch asked && exit 1; } ;;
*version*) echo podman version 5.4.2 ;;
*) echo '[]' ;;
esac
END
chmod +x podman
compose() {
	rm -f asked
	py/bin/podman-compose --podman-path "$dir/podman" --verbose --dry-run up >seen 2>&1
}
# options of the commands that make the network and the container, without the project's name
network() { grep "'create'" seen | grep -o "'--subnet.*'" | tr -d "',"; }
container() { grep -o -- '--network=[^ ]*' seen | sed 's/=.*_front/=front/'; }
go build -o read .
expect "compose-go" "map[router:10.5.0.1] 5 eth7" "$(./read)"
compose
expect "podman network create" "--subnet 10.5.0.0/24 --gateway 10.5.0.254" \
	"$(network | sed 's/ [^ ]*$//')"
expect "podman create" "--network=front:alias=web" "$(container)"
sed -i 's/interface_name/x-podman.interface_name/' compose.yaml
compose
expect "with x-podman.interface_name" "--network=front:interface_name=eth7,alias=web" "$(container)"
