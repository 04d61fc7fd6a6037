#!/bin/bash
# One would guess that a message broker's client survives a network that loses packets for three
# seconds, because TCP sends them again, as pika does.
#
# py-amqp, which kombu and Celery use, sets TCP_USER_TIMEOUT to 1 s: the kernel ends the connection
# after a second without acknowledgement. The message that basic_publish sent meanwhile is lost,
# without an error, and the next one fails.
#
# amqp 5.4.2, pika 1.4.4 (PyPI), nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get amqp==5.4.2 pika==1.4.4
deb_get iproute2=6.1.0-3 nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 \
	libnftnl11=1.2.4-2 libmnl0=1.0.4-3
cat >broker.py <<'END'
"""Accepts one connection of AMQP 0-9-1 after another, and prints each message's text."""
import socket, struct

def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"

def long(text):
    return struct.pack(">I", len(text)) + text

ANSWER = {(10, 11): [struct.pack(">HHHIH", 10, 30, 10, 131072, 0)],
          (10, 40): [struct.pack(">HH", 10, 41) + b"\0"],
          (20, 10): [struct.pack(">HH", 20, 11) + long(b"")],
          (20, 40): [struct.pack(">HH", 20, 41)], (10, 50): [struct.pack(">HH", 10, 51)]}

server = socket.create_server(("127.0.0.1", 5672))
while True:
    peer, _ = server.accept()
    file = peer.makefile("rb")
    try:
        file.read(8)
        peer.sendall(frame(1, 0, struct.pack(">HHBB", 10, 10, 0, 9) + struct.pack(">I", 0)
                           + long(b"PLAIN") + long(b"en_US")))
        while head := file.read(7):
            kind, channel, size = struct.unpack(">BHI", head)
            payload = file.read(size + 1)[:-1]
            if kind == 1:
                for answer in ANSWER.get(struct.unpack(">HH", payload[:4]), []):
                    peer.sendall(frame(1, channel, answer))
            elif kind == 3:
                print(payload.decode(), flush=True)
    except OSError:
        pass
END
cat >publish.py <<'END'
import subprocess, sys, time

def pika():
    import pika
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))
    channel = connection.channel()
    return lambda text: channel.basic_publish("", "q", text)

def amqp():
    import amqp
    connection = amqp.Connection("127.0.0.1")
    connection.connect()
    channel = connection.channel()
    return lambda text: channel.basic_publish(amqp.Message(text), routing_key="q")

def nft(command):
    subprocess.run(["nft", command], check=True)

name = sys.argv[1]
publish = globals()[name]()
publish(f"{name} before")
time.sleep(0.2)
nft("add table ip t; add chain ip t c { type filter hook input priority 0; }; "
    "add rule ip t c tcp dport 5672 drop")
publish(f"{name} during")
time.sleep(3)
nft("delete table ip t")
time.sleep(2)
try:
    publish(f"{name} after")
except Exception as e:
    print(name, type(e).__name__, flush=True)
time.sleep(1)
END
cat >run.sh <<'END'
ip link set lo up
python3 broker.py &
trap 'kill %1' EXIT
sleep 1
for name in pika amqp; do py/bin/python publish.py $name; done
END
own_network run.sh >messages
expect "pika" "before during after" "$(sed -n 's/^pika //p' messages | paste -sd' ')"
expect "py-amqp" "before RecoverableConnectionError" \
	"$(sed -n 's/^amqp //p' messages | paste -sd' ')"
