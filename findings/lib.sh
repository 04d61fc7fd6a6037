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
