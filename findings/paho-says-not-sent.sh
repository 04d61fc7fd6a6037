#!/bin/bash
# One would guess that a message whose publish() returned MQTT_ERR_NO_CONN ("The client is not
# currently connected") is not sent, and that the application is to publish it again.
#
# paho-mqtt keeps messages of QoS 1 and 2 all the same, and sends them once it is connected: who
# publishes again sends two. wait_for_publish() of the first raises an error. Messages of QoS 0 are
# dropped.
#
# paho-mqtt 2.2.0 (PyPI), mosquitto 2.0.11-1.2+deb12u2 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get paho-mqtt==2.2.0
deb_get mosquitto=2.0.11-1.2+deb12u2 libmosquitto1=2.0.11-1.2+deb12u2 \
	libcjson1=1.7.15-1+deb12u4 libwrap0=7.6.q-32 libdlt2=2.18.8-6 libwebsockets17=4.1.6-3 \
	libev4=1:4.33-1 libuv1=1.44.2-1+deb12u1
cat >ask.py <<'PY'
import subprocess, sys, threading, time
import paho.mqtt.client as mqtt
port, broker = int(sys.argv[1]), sys.argv[2:]
again = []  # what publish() did not send

def run():
    return subprocess.Popen(broker, stderr=subprocess.DEVNULL)

def client():
    c = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    c.reconnect_delay_set(1, 1)
    return c

got, subscribed, away = [], threading.Semaphore(0), threading.Event()
reader, writer = client(), client()
reader.on_connect = lambda c, *_: c.subscribe("t", 1)
reader.on_subscribe = lambda *_: subscribed.release()
reader.on_message = lambda c, data, m: got.append(m.payload.decode())
writer.on_disconnect = lambda *_: away.set()
process = run()
for c in reader, writer:
    while True:
        try:
            c.connect("127.0.0.1", port)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    c.loop_start()
subscribed.acquire()
while not writer.is_connected():
    time.sleep(0.05)
process.kill()
process.wait()
away.wait()
for qos in 0, 1:
    info = writer.publish("t", f"QoS {qos}", qos)
    try:
        info.wait_for_publish(1)
        said = "waited"
    except RuntimeError:
        said = "RuntimeError"
    print(f"QoS {qos}:", mqtt.error_string(info.rc), said)
process = run()
subscribed.acquire()
while not writer.is_connected():
    time.sleep(0.05)
for qos in 0, 1:
    writer.publish("t", f"QoS {qos}", qos).wait_for_publish()
writer.publish("t", "end", 1).wait_for_publish()
while "end" not in got:
    time.sleep(0.05)
process.kill()
for qos in 0, 1:
    print(f"QoS {qos}:", got.count(f"QoS {qos}"))
PY
port=$(free_port)
printf 'listener %s 127.0.0.1\nallow_anonymous true\n' "$port" >broker.conf
export LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu
py/bin/python ask.py "$port" root/usr/sbin/mosquitto -c broker.conf >seen
for qos in 0 1; do
	expect "publish() with QoS $qos, the broker is away" \
		"The client is not currently connected. RuntimeError" "$(sed -n "s/^QoS $qos: \(The.*\)/\1/p" seen)"
done
expect "messages with QoS 0, of one published again" 1 "$(sed -n 's/^QoS 0: \([0-9]*\)$/\1/p' seen)"
expect "messages with QoS 1, of one published again" 2 "$(sed -n 's/^QoS 1: \([0-9]*\)$/\1/p' seen)"
