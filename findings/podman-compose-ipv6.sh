#!/bin/bash
# One would guess that podman-compose publishes a port on the IPv6 address that `host_ip` names, as
# it does on an IPv4 address.
#
# It hands `-p ::1:8080:80` to Podman, which takes such an address in brackets only and refuses to
# make the container.
#
# podman-compose 1.6.0 (PyPI), podman 4.3.1 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get podman-compose==1.6.0
deb_get podman=4.3.1+ds1-8+deb12u1+b3 conmon=2.1.6+ds1-1 libgpgme11=1.18.0-3+deb12u1 \
	libassuan0=2.5.5-5 libsubid4=1:4.13+dfsg1-1+deb12u2 libseccomp2=2.5.4-1+deb12u1 \
	libdevmapper1.02.1=2:1.02.185-2
cat >compose.yaml <<'END'
services:
  six:
    image: localhost/web
    ports: [{target: 80, published: 8080, host_ip: "::1"}]
  four:
    image: localhost/web
    ports: [{target: 80, published: 8080, host_ip: 127.0.0.1}]
END
cat >podman <<END
#!/bin/bash
LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu HOME=$dir exec $dir/root/usr/bin/podman \
	--conmon $dir/root/usr/bin/conmon --root $dir/images --runroot $dir/run --tmpdir $dir/tmp \
	--storage-driver vfs --network-config-dir $dir/networks "\$@"
END
chmod +x podman
mkdir rootfs
for service in six four; do
	port=$(py/bin/podman-compose --podman-path "$dir/podman" --verbose \
		--dry-run up "$service" 2>&1 |
		grep -o -- '-p [^ ]*')
	got=$(./podman create $port --rootfs "$dir/rootfs" true 2>&1) || true
	case $service in
	six) want='Error: invalid port format - format is [[hostIP:]hostPort:]containerPort' ;;
	four) want=made got=$(grep -qE '^[0-9a-f]{64}$' <<<"$got" && echo made || echo "$got") ;;
	esac
	expect "$port" "$want" "$got"
done
