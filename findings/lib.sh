# Functions of the scripts in this folder. A script that sources this file works in a temporary
# folder, ends after 235 seconds at the latest, and leaves no file and no process behind.
here=$(cd "$(dirname "$0")" && pwd)
[ -n "${finding_limit-}" ] || finding_limit='set' exec timeout -k 15 220 "$here/$(basename "$0")"
dir=$(mktemp -d)
cd "$dir" || exit
changed=0
# The environment's proxies are for what is installed: a script's own servers are not behind them.
proxies=()
for name in {http,https,all,no}_proxy {HTTP,HTTPS,ALL,NO}_PROXY; do
	[ -z "${!name-}" ] || proxies+=("$name=${!name}")
	unset "$name"
done
trap 'exit 1' INT TERM
trap finish EXIT

finish() {
	local status=$? job
	trap '' INT TERM
	for job in $(jobs -p); do
		# A function's job is a shell, which has the program as its child.
		kill $(cat "/proc/$job/task/$job/children" || true) "$job" || true
	done 2>/dev/null
	wait
	cd / && rm -rf "$dir"
	[ $status != 0 ] || exit $changed
	exit $status
}

# expect WHAT WANT GOT prints GOT, and remembers whether it differs from WANT.
expect() {
	printf '%s: %s\n' "$1" "$3"
	[ "$2" = "$3" ] || { printf '  changed, was: %s\n' "$2" && changed=1; }
}

# holds WHAT CONDITION prints whether a condition in awk's language is true.
holds() {
	if awk "BEGIN { exit !($2) }"; then
		printf '%s: yes\n' "$1"
	else
		printf '%s: no (%s)\n  changed\n' "$1" "$2" && changed=1
	fi
}

# installs PROGRAM ARGUMENT… runs a program with the environment's proxies.
installs() { env "${proxies[@]}" "$@"; }
go() { installs go "$@"; }

# pip_get PACKAGE==VERSION… installs for "$dir/py/bin/python".
pip_get() {
	python3 -m venv --without-pip py
	installs python3 -m pip --python py/bin/python install -q --no-cache-dir --no-compile \
		--disable-pip-version-check --root-user-action ignore "$@"
}

# npm_get PACKAGE@VERSION… installs for scripts in $dir.
npm_get() {
	installs npm install --silent --no-audit --no-fund --cache "$dir/npm" --prefix "$dir" "$@"
}

# deb_get PACKAGE=VERSION… unpacks Debian packages into $dir/root. It needs `apt-get update`.
deb_get() {
	mkdir -p debs root
	(cd debs && installs apt-get -qq -o APT::Sandbox::User=root download "$@")
	for file in debs/*.deb; do dpkg -x "$file" root; done
}

# debian PROGRAM ARGUMENT… runs an unpacked program with the unpacked libraries.
debian() {
	local program
	program=$(find root -type f -path "*bin/$1" | head -1)
	shift
	LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu "$program" "$@"
}

# own_network SCRIPT runs a script in a network namespace of its own, with the unpacked programs.
own_network() {
	LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu \
		PATH=$dir/root/usr/sbin:$dir/root/sbin:$dir/root/bin:$PATH unshare -rn bash -e "$1"
}

# go_get MODULE@VERSION… makes a module that requires them. GOCACHE may name a cache that is kept.
go_get() {
	export GOPATH=$dir/gopath GOCACHE=${GOCACHE:-$dir/gocache} GOFLAGS=-modcacherw CGO_ENABLED=0
	go mod init finding 2>/dev/null
	go get "$@" 2>&1 | grep -v '^go: \(added\|upgraded\|downloading\)' || true
}

# cargo_build DEPENDENCY… builds target/debug/finding from the Rust program on standard input. A
# dependency is a line of Cargo.toml.
cargo_build() {
	mkdir src
	cat >src/main.rs
	printf '%s\n' '[package]' 'name = "finding"' 'version = "0.0.0"' 'edition = "2021"' '' \
		'[dependencies]' "$@" >Cargo.toml
	CARGO_TARGET_DIR=$dir/target CARGO_HOME=$dir/cargo installs cargo build -q
}

free_port() {
	python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_port PORT waits until a server accepts connections there.
wait_port() {
	for _ in $(seq 100); do
		(: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
		sleep 0.1
	done
	echo "no server on port $1" >&2 && return 1
}

# chunk TEXT [MEMBERS] prints a chunk of a chat completion, as OpenAI's API streams them.
chunk() {
	printf 'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
	printf '[{"index":0,"delta":{"content":"%s"}}]%s}\n\n' "$1" "${2:+,$2}"
}

# mvn_get GROUP:ARTIFACT:VERSION… copies libraries, and what they need, to $dir/jars.
mvn_get() {
	{
		echo '<project><modelVersion>4.0.0</modelVersion><groupId>f</groupId>'
		echo '<artifactId>finding</artifactId><version>0</version><dependencies>'
		printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>%s\n' \
			$(printf '%s:</dependency>\n' "$@" | tr ':' ' ')
		echo '</dependencies></project>'
	} >pom.xml
	installs mvn -q -B -Dmaven.repo.local="$dir/m2" dependency:copy-dependencies \
		-DoutputDirectory="$dir/jars" >&2
}

# relay PROGRAM PORT TO relays TCP connections to a port of 127.0.0.1 from another, by a program of
# deb_get (socat, rinetd, redir, simpleproxy, pen) or of pip_get (nginx, haproxy, envoy, traefik).
relay() {
	local from=127.0.0.1:$2 to=127.0.0.1:$3
	case $1 in
	socat) debian socat "tcp-listen:$2,bind=127.0.0.1,fork" "tcp:$to" & ;;
	rinetd) echo "127.0.0.1 $2 127.0.0.1 $3" >rinetd.conf && debian rinetd -f -c rinetd.conf & ;;
	redir) debian redir -n "$from" "$to" & ;;
	simpleproxy) debian simpleproxy -L "$from" -R "$to" & ;;
	pen) debian pen -f "$from" "$to" 2>pen.log & ;;
	nginx) run_nginx "$2" "stream { server { listen $from; proxy_pass $to; } }" & ;;
	haproxy) run_haproxy "$2" "$3" tcp & ;;
	envoy) run_envoy "$2" "$3" tcp_proxy.v3.TcpProxy 'cluster: s' & ;;
	traefik) run_traefik "$2" "{tcp: {routers: {r: {rule: 'HostSNI(\`*\`)', service: s}},
		services: {s: {loadBalancer: {servers: [{address: '$to'}]}}}}}" & ;;
	esac
	wait_port "$2"
	[ "$1" != traefik ] || while no_routes "$2" ''; do sleep 0.1; done
}

# proxy PROGRAM PORT TO [SETTINGS] is relay for HTTP, by nginx, haproxy, envoy, traefik or caddy.
# SETTINGS are further ones of nginx's server or of Envoy's route.
proxy() {
	local to=http://127.0.0.1:$3 request=$'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
	case $1 in
	nginx) run_nginx "$2" "http { access_log off; client_body_temp_path t; proxy_temp_path t;
		fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
		server { listen 127.0.0.1:$2; ${4-} location / { proxy_pass $to; } } }" & ;;
	haproxy) run_haproxy "$2" "$3" http & ;;
	envoy) run_envoy "$2" "$3" http_connection_manager.v3.HttpConnectionManager "
          route_config:
            virtual_hosts:
            - {name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: s${4-}}}]}
          http_filters:
          - name: router
            typed_config:
              '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" & ;;
	traefik) run_traefik "$2" "{http: {routers: {r: {rule: 'PathPrefix(\`/\`)', service: s}},
		services: {s: {loadBalancer: {servers: [{url: '$to'}]}}}}}" & ;;
	caddy)
		printf '{\nadmin off\nauto_https off\npersist_config off\n}\nhttp://:%s {\n%s\n%s\n}\n' \
			"$2" 'bind 127.0.0.1' "reverse_proxy $to" >"$2.caddy"
		HOME=$dir XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir \
			py/bin/caddy run --adapter caddyfile --config "$2.caddy" 2>caddy.log &
		;;
	esac
	wait_port "$2"
	[ "$1" != traefik ] || while no_routes "$2" "$request"; do sleep 0.1; done
}

run_nginx() {
	echo "daemon off; master_process off; pid $1.pid; error_log stderr; events {} $2" >"$1.nginx"
	"$(find py -type f -name nginx -perm -1)" -e stderr -p "$dir" -c "$dir/$1.nginx"
}

run_haproxy() {
	printf '%s\n' 'listen l' "mode $3" 'timeout connect 5s' 'timeout client 20s' \
		'timeout server 20s' "bind 127.0.0.1:$1" "server s 127.0.0.1:$2" >"$1.haproxy"
	"$(find py -type f -name haproxy -perm -1)" -db -f "$1.haproxy"
}

run_envoy() {
	cat >"$1.yaml" <<-END
		static_resources:
		  listeners:
		  - address: {socket_address: {address: 127.0.0.1, port_value: $1}}
		    filter_chains:
		    - filters:
		      - name: f
		        typed_config:
		          '@type': type.googleapis.com/envoy.extensions.filters.network.$3
		          stat_prefix: x
		          $4
		  clusters:
		  - name: s
		    load_assignment:
		      cluster_name: s
		      endpoints:
		      - lb_endpoints:
		        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: $2}}}
	END
	py/bin/envoy -c "$1.yaml" --disable-hot-restart --concurrency 1 -l error
}

# no_routes PORT TEXT reports whether Traefik has no routes yet: it closes, or answers 404.
no_routes() {
	python3 - "$@" <<'END'
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as c:
    c.settimeout(0.5)
    try:
        c.sendall(sys.argv[2].encode())
        sys.exit(c.recv(12)[9:] not in (b"404", b""))
    except OSError:
        sys.exit(1)
END
}

run_traefik() {
	echo "${2//$'\t'/ }" >"$1-routes.yaml"
	printf '%s\n' "entryPoints: {e: {address: '127.0.0.1:$1'}}" 'log: {level: ERROR}' \
		"providers: {file: {filename: $dir/$1-routes.yaml, watch: false}}" >"$1-traefik.yaml"
	"$(find py -type f -name 'traefik*' -perm -1 | head -1)" --configfile="$dir/$1-traefik.yaml"
}
