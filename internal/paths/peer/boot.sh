{
mark=MARK
root=SUDO
[ "$(id -u)" -eq 0 ] && root=
user=$(id -un 2>/dev/null)
case $user in '' | *[!A-Za-z0-9._-]*) user="#$(id -u)" ;; esac
own=$(command -v toll 2>/dev/null)
sum=
case $own in
/*) sum=$(sha256sum <"$own" 2>/dev/null) && sum=${sum%% *} ;;
esac
echo
echo "$mark have $(uname -s) $(uname -m) ${sum:--} $user ${SSH_CONNECTION:--}"
read -r word size
case $word in
use)
	$root "$own" agent --stdio "$mark"
	exit
	;;
copy) ;;
*) exit 1 ;;
esac
# A copy whose shell was killed, or whose machine went down: nothing has come for an hour.
for at in "$TMPDIR" /tmp /var/tmp "$XDG_RUNTIME_DIR" "$HOME"; do
	for old in "$at"/.bridgetoll-copy-*; do
		new=$(find "$old" -mmin -60 2>/dev/null) && [ -z "$new" ] && rm -rf "$old" 2>/dev/null
	done
done
dir=
drop() { [ -z "$dir" ] || rm -rf "$dir"; }
trap 'drop; exit 1' HUP INT TERM PIPE
for at in "$TMPDIR" /tmp /var/tmp "$XDG_RUNTIME_DIR" "$HOME"; do
	[ -n "$at" ] && dir=$(mktemp -d "$at/.bridgetoll-copy-XXXXXXXX" 2>/dev/null) || { dir=; continue; }
	{ echo '#!/bin/sh' >"$dir/toll" && chmod 700 "$dir/toll" && "$dir/toll"; } 2>/dev/null && break
	drop
	dir=
done
[ -n "$dir" ] || { echo "$mark fail place"; exit 1; }
head -c "$size" | {
	trap '' HUP INT TERM # it outlives a shell that is killed, and removes what there is of the copy
	echo "$mark send"
	cat >"$dir/toll"
	[ "$(wc -c <"$dir/toll")" -eq "$size" ] && kill -0 $$ 2>/dev/null || drop
}
[ -f "$dir/toll" ] || { echo "$mark fail space"; exit 1; }
$root "$dir/toll" agent --stdio "$mark" --remove
code=$?
drop
exit $code
}
